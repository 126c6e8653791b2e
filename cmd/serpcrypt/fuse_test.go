package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/skip"
)

// needFuse skips a test where nothing can be mounted by FUSE.
func needFuse(t *testing.T) {
	t.Helper()
	if err := fusefs.Available(); err != nil {
		skip.Skip(t, err.Error())
	}
	if err := unix.Access("/dev/fuse", unix.R_OK|unix.W_OK); err != nil {
		skip.Skip(t, "/dev/fuse cannot be opened: "+err.Error())
	}
}

// hiding runs a script that hides files, and then the program, with mounts of
// its own.
func hiding(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	needMounts(t)
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can hide files")
	}
	if output, err := exec.Command("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/etc").CombinedOutput(); err != nil {
		skip.Skip(t, fmt.Sprintf("no files can be hidden here: %v: %s", err, output))
	}
	return exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, "sh"}, args...)...)
}

// TestWithoutFuse: all commands that need /dev/fuse say so alike.
func TestWithoutFuse(t *testing.T) {
	box := newBox(t)
	for _, args := range [][]string{
		{"create", "--fs", "ext4", "--size", "16M", box + ".new"},
		{"open", "--raw", box, t.TempDir()},
	} {
		o := runCommand(t, hiding(t, `mount -t tmpfs none /dev && exec serpcrypt "$@"`, args...)).must(t, exitBad)
		if want := "error: there is no /dev/fuse\nserpcrypt: hint: load the kernel's module: modprobe fuse\n"; !strings.HasSuffix(o.stderr, want) {
			t.Errorf("%s says\n%s", args[0], o.stderr)
		}
	}
	if left := names(t, filepath.Dir(box)); left != "box" {
		t.Errorf("left behind: %s", left)
	}
}

// TestWithoutLoopDevices: only the kernel's file systems need them.
func TestWithoutLoopDevices(t *testing.T) {
	const onlyFuse = `cp -a /dev/fuse /dev/null /dev/urandom "$KEPT" && mount -t tmpfs none /dev && cp -a "$KEPT"/* /dev && exec serpcrypt "$@"`
	dir := openFolder(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"kept", "box"} {
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path("key"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	inHiding := func(args ...string) outcome {
		cmd := hiding(t, onlyFuse, args...)
		cmd.Env = append(os.Environ(), "KEPT="+path("kept"), runtimeDirEnv+"="+path("run"))
		return runCommand(t, cmd)
	}
	inHiding("create", "-q", "--sparse", "--size", "16M", "--fs", "ext4", "--pbkdf-force-iterations", "1000", "-d", path("key"), path("box.luks")).must(t, 0)
	o := inHiding("open", "-d", path("key"), path("box.luks"), path("box")).must(t, exitBad)
	if want := "error: there are no loop devices here\nserpcrypt: hint: modprobe loop, or " + hintRaw + "\n"; !strings.HasSuffix(o.stderr, want) {
		t.Errorf("it says\n%s", o.stderr)
	}
	if left := names(t, path("box")) + names(t, path("run")); left != folderLockName {
		t.Errorf("left behind: %s", left)
	}
}

// TestWithoutMtab: fusermount3 mounts without /etc/mtab, but does not unmount.
func TestWithoutMtab(t *testing.T) {
	const script = `mount -t tmpfs none /etc && echo nobody:x:65534:65534::/:/bin/sh >/etc/passwd &&
		exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"`
	dir := openFolder(t)
	program, tmp := filepath.Join(dir, "serpcrypt"), filepath.Join(dir, "tmp")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyProgram(t, program, self, 0o755)
	if err := os.Mkdir(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{program, "create", "--fs", "ext4", "--size", "16M", filepath.Join(tmp, "new")},
		{program, "open", "--raw", filepath.Join(dir, "box"), tmp},
	} {
		cmd := hiding(t, script, args...)
		cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
		o := runCommand(t, cmd).must(t, exitBad)
		if want := "hint: as root: ln -s ../proc/self/mounts /etc/mtab\n"; !strings.HasSuffix(o.stderr, want) {
			t.Errorf("%s says\n%s", args[1], o.stderr)
		}
		if left := names(t, tmp); left != "" {
			t.Errorf("%s left behind: %s", args[1], left)
		}
	}
}
