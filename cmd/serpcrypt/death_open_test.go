package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDeathOfOpen kills open at random, alone or together with the server that it
// has started. What it leaves goes away by itself, or the next open takes it away.
func TestDeathOfOpen(t *testing.T) {
	rounds := 5
	if os.Getenv("SERPCRYPT_LONG") == "1" {
		rounds = 20
	} else {
		t.Logf("%d rounds of each kind; SERPCRYPT_LONG=1 runs 20", rounds)
	}
	s := newOpenSession(t)
	s.ends(0, "serpcrypt", "create", "--size", "16M", "--fs", "ext4", "--pbkdf-force-iterations", "1000", "-d", "key", "box.luks")
	for _, c := range []struct {
		name   string
		server bool // is killed as well
		again  bool // it is opened again at once
		open   []string
	}{
		{"open, closed", false, false, nil},
		{"open, opened again", false, true, nil},
		{"open and server, closed", true, false, nil},
		{"open and server, opened again", true, true, nil},
		{"open --raw and server, opened again", true, true, []string{"--raw"}},
	} {
		open := append([]string{"serpcrypt", "open", "-d", "key", "box.luks", "box"}, c.open...)
		t.Run(c.name, func(t *testing.T) {
			s := &openSession{t, s.dir}
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			start := time.Now()
			s.ends(0, open...)
			took := time.Since(start)
			s.ends(0, "serpcrypt", "close", "box")
			killed := 0
			for round := 0; killed < rounds; round++ {
				after := time.Duration(random.Int64N(int64(took)))
				if s.killOpen(open, after, c.server) {
					killed++
				}
				if c.again {
					s.eventually(open...)
					s.ends(0, "serpcrypt", "close", "box")
				}
				if left := s.leftLater(); left != "" {
					t.Fatalf("killed after %v: left behind: %s", after, left)
				}
				if round == 20*rounds {
					t.Fatalf("killed %d times in %d rounds", killed, round)
				}
			}
			s.ends(0, open...)
			s.ends(0, "serpcrypt", "close", "box")
			s.clean()
		})
	}
}

// killOpen kills an open, and its server, if it is not faster.
func (s *openSession) killOpen(open []string, after time.Duration, serverToo bool) (killed bool) {
	s.t.Helper()
	cmd := s.command(open...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(after)
	if serverToo {
		// First, as it would notice and begin to clean up.
		entries, _ := runtimeFolder{s.path("run")}.entries()
		for _, e := range entries {
			if state, err := e.readState(); err == nil && state.PID > 0 {
				_ = syscall.Kill(state.PID, syscall.SIGKILL)
			}
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return true
	}
	if cmd.ProcessState.Success() && !serverToo {
		s.ends(0, "serpcrypt", "close", "box")
	}
	return false
}

// leftLater returns what is left when servers have had time to clean up, and close
// to take away the rest.
func (s *openSession) leftLater() string {
	var left []string
	for start := time.Now(); time.Since(start) < hangLimit; time.Sleep(10 * time.Millisecond) {
		if left = leftovers(s.dir); len(left) == 0 {
			return ""
		}
		// It complains of what was open and died, and says nothing of what never was.
		_ = exec.Command("serpcrypt", "close", "--all").Run()
	}
	return strings.Join(left, ", ")
}
