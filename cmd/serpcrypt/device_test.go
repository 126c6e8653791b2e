package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"serpcrypt/internal/skip"
)

// loopDevice makes a block device of size bytes.
func loopDevice(t *testing.T, size int64) string {
	t.Helper()
	backing := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(backing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(backing, size); err != nil {
		t.Fatal(err)
	}
	return loopOn(t, backing)
}

func TestCreateOnDevice(t *testing.T) {
	device := loopDevice(t, 4<<20)
	create := func(options ...string) outcome {
		return serpcrypt(t, testPassphrase, append([]string{"create", "--pbkdf-force-iterations", "1000", device}, options...)...)
	}
	refused := func(o outcome, code int, want string) {
		t.Helper()
		if o.code != code || !strings.Contains(o.stderr, want) {
			t.Errorf("exit code %d, want %d with %q\n%s", o.code, code, want, o.stderr)
		}
	}
	refused(create("--size", "3M"), exitUsage, "--size is for files")
	refused(create(), exitBusy, "all that is on "+device+" will be lost: not done without a confirmation")
	if o := create("-q").must(t, 0); !strings.Contains(o.stdout, "2 MiB") {
		t.Errorf("create says\n%s", o.stdout)
	}
	serpcrypt(t, testPassphrase, "verify", device).must(t, 0)

	refused(create("-q"), exitBusy, device+" holds LUKS2")
	refused(create("--force"), exitBusy, device+" holds LUKS2, which will be lost: not done without a confirmation")
	serpcrypt(t, testPassphrase, "verify", device).must(t, 0)
	create("--force", "-q").must(t, 0)

	small := loopDevice(t, 1<<20)
	refused(serpcrypt(t, testPassphrase, "create", "-q", small), exitUsage, "1 MiB are too few")
}

// TestCreateOnMountedDevice: what is mounted or otherwise in use stays.
func TestCreateOnMountedDevice(t *testing.T) {
	device := loopDevice(t, 4<<20)
	mkfs, err := findMkfs("ext4")
	if err != nil {
		skip.Skip(t, err.Error())
	}
	if out, err := exec.Command(mkfs, "-q", device).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	dir := t.TempDir()
	if err := syscall.Mount(device, dir, "ext4", 0, ""); err != nil {
		skip.Skip(t, "nothing can be mounted here: "+err.Error())
	}
	defer syscall.Unmount(dir, 0)
	for _, args := range [][]string{
		{"create", "--force", "-q", device},
		{"verify", device},
		{"import", "/dev/null", device},
	} {
		if o := serpcrypt(t, testPassphrase, args...); o.code != exitBusy || !strings.Contains(o.stderr, "in use: "+device) {
			t.Errorf("%v: exit code %d\n%s", args, o.code, o.stderr)
		}
	}
}

// TestInterruptedCreateOnDevice: nothing looks like a container, neither the
// new nor the old one, which is partly overwritten.
func TestInterruptedCreateOnDevice(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			device := loopDevice(t, 64<<20)
			serpcrypt(t, testPassphrase, "create", "-q", "--sparse", "--pbkdf-force-iterations", "1000", device).must(t, 0)
			cmd := startCreate(t, "fill the payload", "--force", "-q", "--pbkdf-force-iterations", "1000", device)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if o := serpcrypt(t, "", "dump", device).must(t, exitBad); !strings.Contains(o.stderr, "this is no LUKS container") {
				t.Errorf("dump says\n%s", o.stderr)
			}
		})
	}
}
