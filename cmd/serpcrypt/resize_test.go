package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterruptedGrowth: a file whose growth is interrupted has its old length
// and content, and one whose growth is killed is a whole container between the
// two, which grows on.
func TestInterruptedGrowth(t *testing.T) {
	const wanted = 600 << 20
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		box := newBox(t)
		before := content(t, box)
		cmd := exec.Command("serpcrypt", "resize", box, "600M")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); sizeOf(t, box) == int64(len(before)); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it does not grow")
			}
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		code := exitCode(t, cmd.Wait())
		size := sizeOf(t, box)
		switch {
		case signal == syscall.SIGKILL && (size <= int64(len(before)) || size > wanted):
			t.Errorf("killed: the file has %d bytes", size)
		case signal != syscall.SIGKILL && (code != exitSignal+int(signal) || content(t, box) != before):
			t.Errorf("%v: exit code %d, and the file has %d bytes, not %d as before\n%s", signal, code, size, len(before), &stderr)
		}
		serpcrypt(t, testPassphrase, "verify", box).must(t, 0)
		serpcrypt(t, testPassphrase, "resize", box, "20M", "--force", "-q").must(t, 0)
		serpcrypt(t, testPassphrase, "verify", box).must(t, 0)
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
