package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"serpcrypt/internal/skip"
)

// TestWithoutFuse: all commands that need /dev/fuse say so alike.
func TestWithoutFuse(t *testing.T) {
	needMounts(t)
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can hide /dev/fuse")
	}
	hide := func(args ...string) *exec.Cmd {
		const script = `mount -t tmpfs none /dev && exec serpcrypt "$@"`
		return exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, "sh"}, args...)...)
	}
	box := newBox(t)
	for _, args := range [][]string{
		{"create", "--fs", "ext4", "--size", "16M", box + ".new"},
		{"open", "--raw", box, t.TempDir()},
	} {
		o := runCommand(t, hide(args...)).must(t, exitBad)
		if want := "error: there is no /dev/fuse\nserpcrypt: hint: load the kernel's module: modprobe fuse\n"; !strings.HasSuffix(o.stderr, want) {
			t.Errorf("%s says\n%s", args[0], o.stderr)
		}
	}
	if left := names(t, filepath.Dir(box)); left != "box" {
		t.Errorf("left behind: %s", left)
	}
}
