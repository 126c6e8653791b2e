package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/skip"
)

// soakEnv is how long TestSoak works in all, as Go writes durations.
const soakEnv = "SERPCRYPT_SOAK"

// TestSoak works in open containers for a long time, on one processor and on two:
// it writes, reads, syncs and discards blocks, makes and removes files, and closes
// and opens again. What is read has to be what was written, the server must not
// grow, and nothing may be left.
func TestSoak(t *testing.T) {
	length := 4 * time.Second
	if text := os.Getenv(soakEnv); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Logf("%v; test/soak/run.sh does it for an hour", length)
	}
	for _, processors := range []int{1, 2} {
		for _, raw := range []bool{true, false} {
			t.Run(fmt.Sprintf("processors=%d,raw=%v", processors, raw), func(t *testing.T) {
				if !raw && os.Geteuid() != 0 {
					skip.Skip(t, "only root can mount a file system that discards")
				}
				soak(t, processors, raw, length/4)
			})
		}
	}
}

// warmUp is more than four times what a server needs to take all memory that it
// ever will.
const warmUp = 20 * time.Second

func soak(t *testing.T, processors int, raw bool, length time.Duration) {
	const servers = 3 // one after the other
	m := newMortal(t, raw, false, "--sparse")
	for _, w := range m.writers {
		if w, ok := w.(*blockWriter); ok {
			w.discards = true
		}
	}
	options := []string{"--allow-discards"}
	if !raw {
		options = append(options, "-o", "discard")
	}
	m.ends(0, "serpcrypt", "close", "box")
	for range servers {
		onProcessors(t, processors, func() { m.open(options...) })
		samples := m.workFor(length / servers)
		if length/servers >= warmUp {
			samples.check(t)
		} else {
			t.Logf("too short a time to see whether it grows; it took at most %d KiB", slices.Max(samples.kib))
		}
		m.check()
		m.ends(0, "serpcrypt", "close", "box")
		m.clean()
		m.fsck()
	}
	m.open()
	m.check()
	m.ends(0, "serpcrypt", "close", "box")
}

// onProcessors runs do, and what that starts, on so many processors, or on all if
// there are fewer.
func onProcessors(t *testing.T, n int, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, some unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for i := 0; some.Count() < min(n, all.Count()); i++ {
		if all.IsSet(i) {
			some.Set(i)
		}
	}
	if err := unix.SchedSetaffinity(0, &some); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.SchedSetaffinity(0, &all); err != nil {
			t.Error(err)
		}
	}()
	do()
}

// samples are what a server took, at regular times.
type samples struct{ kib, files, threads []int }

// workFor has all writers work, and watches the server.
func (m *mortal) workFor(length time.Duration) *samples {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	ended := make(chan error, len(m.writers))
	for _, w := range m.writers {
		go func() { ended <- w.work(ctx) }()
	}
	process := fmt.Sprintf("/proc/%d", m.theOpen().state.PID)
	s := &samples{}
	for ctx.Err() == nil && len(ended) == 0 {
		s.take(m.t, process)
		select {
		case <-ctx.Done():
		case <-time.After(min(length/20, time.Second)):
		}
	}
	for range m.writers {
		if err := m.within("a writer", func() error { return <-ended }); err != nil {
			m.t.Fatal(err)
		}
	}
	return s
}

func (s *samples) take(t *testing.T, process string) {
	t.Helper()
	status := content(t, process+"/status")
	s.kib = append(s.kib, statusValue(t, status, "VmRSS:"))
	s.threads = append(s.threads, statusValue(t, status, "Threads:"))
	files, err := os.ReadDir(process + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	s.files = append(s.files, len(files))
}

// statusValue finds a number in /proc/PID/status.
func statusValue(t *testing.T, status, name string) (n int) {
	t.Helper()
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name); ok {
			if _, err := fmt.Sscan(value, &n); err == nil {
				return n
			}
		}
	}
	t.Fatalf("there is no %s in\n%s", name, status)
	return 0
}

// check compares the last quarter of the time with the second.
func (s *samples) check(t *testing.T) {
	t.Helper()
	if len(s.kib) < 8 {
		t.Fatalf("only %d samples", len(s.kib))
	}
	for _, c := range []struct {
		what    string
		samples []int
		more    int // than in the second quarter is growth
	}{
		{"KiB of memory", s.kib, 8 << 10},
		{"open files", s.files, 2},
		{"threads", s.threads, 4},
	} {
		n := len(c.samples)
		early, late := median(c.samples[n/4:n/2]), median(c.samples[n-n/4:])
		t.Logf("%s: %d, and later %d; most %d", c.what, early, late, slices.Max(c.samples))
		if late > early+c.more {
			t.Errorf("the server grows: it had %d %s, and later %d", early, c.what, late)
		}
	}
}

func median(values []int) int {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
