package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"serpcrypt/internal/skip"
)

// TestWarnOfSwap: whatever holds keys says so if they may be swapped out.
func TestWarnOfSwap(t *testing.T) {
	needMounts(t)
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can open its container without the right to lock memory")
	}
	box := newBox(t)
	for _, args := range [][]string{
		{"create", "--size", "3M", "--pbkdf-force-iterations", "1000", "-q", box + ".new"},
		{"verify", box},
		{"export", box, "-"},
		{"import", os.DevNull, box},
		{"open", box, t.TempDir()}, // fails, as there is no file system
	} {
		const script = `ulimit -l 0 && exec setpriv --bounding-set=-ipc_lock serpcrypt "$@"`
		cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
		cmd.Stdin = strings.NewReader(testPassphrase)
		if o := runCommand(t, cmd); strings.Count(o.stderr, "warning: memory") != 1 || !strings.Contains(o.stderr, "use encrypted swap space") {
			t.Errorf("%s says\n%s", args[0], o.stderr)
		}
	}
}
