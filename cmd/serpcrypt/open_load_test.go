package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"serpcrypt/volume"
)

// TestOpenTree keeps a real tree of files in a container.
func TestOpenTree(t *testing.T) {
	s := newOpenSession(t)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	s.run("serpcrypt", "create", "--size", "400M", "--fs", "ext4", "--pbkdf-force-iterations", "1000", "-d", "key", "box.luks")
	s.run("serpcrypt", "open", "-d", "key", "box.luks", "box")
	s.run("cp", "-r", tree, "box/tree")
	s.run("serpcrypt", "close", "box")
	s.run("serpcrypt", "open", "-d", "key", "box.luks", "box")
	s.run("diff", "-r", tree, "box/tree")
	s.run("serpcrypt", "close", "box")
	s.run("serpcrypt", "verify", "-d", "key", "box.luks")
	s.run("serpcrypt", "open", "--raw", "-r", "-d", "key", "box.luks", "box")
	s.run("e2fsck", "-fn", "box/volume")
	s.run("serpcrypt", "close", "box")
}

// TestOpenMemory measures the most memory that a server took while many
// processes wrote and read large pieces at once.
func TestOpenMemory(t *testing.T) {
	const (
		pieces, piece, rounds = 32, 1 << 20, 6
		most                  = 100 << 10 // KiB
	)
	s := newOpenSession(t)
	s.run("serpcrypt", "create", "--sparse", "--size", fmt.Sprint(pieces*piece+(4<<20)), "--pbkdf-force-iterations", "1000", "-d", "key", "box.luks")
	s.run("serpcrypt", "open", "--raw", "-d", "key", "box.luks", "box")
	f := s.theOpen()
	file, err := os.OpenFile(s.path("box/volume"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range pieces {
		all.Go(func() {
			want, got := bytes.Repeat([]byte{byte(i + 1)}, piece), make([]byte, piece)
			for range rounds {
				if _, err := file.WriteAt(want, int64(i)*piece); err != nil {
					t.Errorf("write: %v", err)
				}
				if _, err := file.ReadAt(got, int64(i)*piece); err != nil || !bytes.Equal(got, want) {
					t.Errorf("piece %d does not read as it was written: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	peak := peakMemory(t, f.state.PID)
	t.Logf("most memory: %d KiB", peak)
	if peak == 0 || peak >= most {
		t.Errorf("the server took %d KiB, at most %d are right", peak, most)
	}
	s.run("serpcrypt", "close", "box")
}

// peakMemory returns the largest resident size so far, in KiB.
func peakMemory(t *testing.T, pid int) (kib int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if _, err := fmt.Sscan(value, &kib); err != nil {
				t.Fatal(err)
			}
		}
	}
	return kib
}

// TestOpenSecrets looks for passphrase and volume key in all that can be seen
// of a server: command line, environment, runtime folder, memory.
func TestOpenSecrets(t *testing.T) {
	s := newOpenSession(t)
	passphrase := rand.Text()
	if err := os.WriteFile(s.path("key"), []byte(passphrase), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("serpcrypt", "create", "--sparse", "--size", "4M", "--pbkdf-force-iterations", "1000", "-d", "key", "box.luks")
	s.run("serpcrypt", "open", "--raw", "-d", "key", "box.luks", "box")
	f := s.theOpen()
	process := fmt.Sprintf("/proc/%d/", f.state.PID)
	for _, path := range []string{process + "cmdline", process + "environ", f.entry.statePath()} {
		text, err := os.ReadFile(path)
		if err != nil && os.Geteuid() != 0 {
			continue // not even its own user may look
		}
		if err != nil || len(text) == 0 {
			t.Errorf("%s: %d bytes, %v", path, len(text), err)
		}
		if bytes.Contains(text, []byte(passphrase)) {
			t.Errorf("the passphrase is in %s", path)
		}
	}
	limits, err := os.ReadFile(process + "limits")
	if err != nil || !bytes.Contains(limits, []byte("Max core file size        0                    0 ")) {
		t.Errorf("the server may dump core: %v\n%s", err, limits)
	}
	if os.Geteuid() == 0 { // nobody else can look
		container, err := volume.PeekFile(s.path("box.luks"))
		if err != nil {
			t.Fatal(err)
		}
		defer container.Close()
		key, err := volume.Unlock(t.Context(), volume.Attached(container), []byte(passphrase), volume.AnySlot, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer key.Close()
		half := key.Bytes.Len() / 2 // XTS takes it in halves
		checkMemory(t, process, map[string][]byte{
			"passphrase": []byte(passphrase), "key": key.Bytes.Bytes()[:half], "tweak key": key.Bytes.Bytes()[half:],
		})
	}
	s.run("serpcrypt", "close", "box")
}

// checkMemory searches the memory of a process for secrets that it no longer
// needs or never had.
func checkMemory(t *testing.T, process string, secrets map[string][]byte) {
	t.Helper()
	maps, err := os.ReadFile(process + "maps")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(process + "mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	searched, code := 0, false
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		if _, err := fmt.Sscanf(line, "%x-%x r", &from, &to); err != nil {
			continue
		}
		content, err := io.ReadAll(io.NewSectionReader(memory, from, to-from))
		if err != nil && len(content) == 0 {
			continue // the kernel's own pages
		}
		searched += len(content)
		code = code || bytes.Contains(content, []byte("serpcrypt"))
		for name, secret := range secrets {
			if bytes.Contains(content, secret) {
				t.Errorf("the %s is in the server's memory, at %s", name, line)
			}
		}
	}
	if searched < 1<<20 || !code {
		t.Errorf("only %d bytes of the server's memory were searched", searched)
	}
}
