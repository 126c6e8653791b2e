package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReplacedMeanwhile: while a command waits for its input, the container gives
// way to another file.
func TestReplacedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []string
		stdin string
	}{
		{"import", []string{"import", "-", "box", "--key-file", "key"}, "plaintext"},
		{"resize", []string{"resize", "box", "2560K", "--force", "-q"}, testPassphrase + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := newBox(t)
			folder := filepath.Dir(box)
			if err := os.WriteFile(filepath.Join(folder, "key"), []byte(testPassphrase), 0o600); err != nil {
				t.Fatal(err)
			}
			before := content(t, box)
			cmd := exec.Command("serpcrypt", c.args...)
			cmd.Dir = folder
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan outcome, 1)
			go func() { ended <- runCommand(t, cmd) }()
			waitUntilLocked(t, box)
			replace(t, box)
			if _, err := io.WriteString(in, c.stdin); err != nil {
				t.Fatal(err)
			}
			in.Close()
			isRefused(t, <-ended, "hint: "+hintTryAgain)
			if content(t, box+".old") != before {
				t.Error("the container has changed")
			}
		})
	}
}

// TestReplacedWhileImporting: what was written is not where its name leads to.
func TestReplacedWhileImporting(t *testing.T) {
	box := filepath.Join(t.TempDir(), "box")
	serpcrypt(t, testPassphrase+"\n", "create", "--size", "64M", "--sparse", "--pbkdf-force-iterations", "1000", "-q", box).must(t, 0)
	source := filepath.Join(t.TempDir(), "source")
	if err := errors.Join(os.WriteFile(source, nil, 0o600), os.Truncate(source, 40<<20)); err != nil {
		t.Fatal(err)
	}
	wrote := firstWrite(t, box)
	cmd := exec.Command("serpcrypt", "import", "--kernel", "generic", source, box) // so that it takes its time
	cmd.Stdin = strings.NewReader(testPassphrase + "\n")
	ended := make(chan outcome, 1)
	go func() { ended <- runCommand(t, cmd) }()
	select {
	case <-wrote:
	case o := <-ended:
		t.Fatalf("it ended before it wrote: %+v", o)
	}
	replace(t, box)
	isRefused(t, <-ended, "hint: all was written to the file that had the name before")
}

// waitUntilLocked returns when somebody uses the container.
func waitUntilLocked(t *testing.T, box string) {
	t.Helper()
	file, err := os.Open(box)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(time.Millisecond) {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
		if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
			t.Fatal(err)
		}
		if lock.Type != unix.F_UNLCK {
			return
		}
	}
	t.Fatal("nobody locks the container")
}

// replace puts another file in the container's place, which keeps the name with
// ".old" behind it.
func replace(t *testing.T, box string) {
	t.Helper()
	err := errors.Join(os.Link(box, box+".old"), os.WriteFile(box+".new", []byte("another"), 0o600), os.Rename(box+".new", box))
	if err != nil {
		t.Fatal(err)
	}
}

func isRefused(t *testing.T, o outcome, hint string) {
	t.Helper()
	o.must(t, exitBusy)
	for _, says := range []string{"the name belongs to another file by now, or to none", hint} {
		if !strings.Contains(o.stderr, says) {
			t.Errorf("no %q in\n%s", says, o.stderr)
		}
	}
}
