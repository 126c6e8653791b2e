package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"serpcrypt/internal/skip"
)

// TestCreateFileSystem: there is a file system, and the fill has survived it.
func TestCreateFileSystem(t *testing.T) {
	needFuse(t)
	for _, name := range []string{"ext4", "vfat"} {
		t.Run(name, func(t *testing.T) {
			if _, err := findMkfs(name); err != nil {
				skip.Skip(t, err.Error())
			}
			box := newBox(t, "--size", "16M", "--fs", name)
			if o := serpcrypt(t, testPassphrase, "verify", box).must(t, 0); !strings.Contains(o.stdout, "  file system  passed   "+name+"\n") {
				t.Errorf("verify says\n%s", o.stdout)
			}
			const payload, block = 2 << 20, 4096
			data := []byte(content(t, box))
			for at := payload; at < len(data); at += block {
				if bytes.Equal(data[at:at+block], make([]byte, block)) {
					t.Fatalf("the file shows at byte %d that nothing is there", at)
				}
			}
		})
	}
}

// TestExtFileSystemIsSound: e2fsck finds nothing wrong.
func TestExtFileSystemIsSound(t *testing.T) {
	needFuse(t)
	e2fsck, err := exec.LookPath("/usr/sbin/e2fsck")
	if err != nil {
		skip.Skip(t, "e2fsck is not installed")
	}
	box := newBox(t, "--size", "16M", "--fs", "ext4")
	plain := filepath.Join(t.TempDir(), "plain")
	serpcrypt(t, testPassphrase, "export", box, plain).must(t, 0)
	runCommand(t, exec.Command(e2fsck, "-f", "-n", plain)).must(t, 0)
}

// TestMkfsFails: what mkfs says is told, and nothing is left.
func TestMkfsFails(t *testing.T) {
	needFuse(t)
	bin, dir := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho this disk is not to my taste >&2\nexit 7\n"
	if err := os.WriteFile(filepath.Join(bin, "mkfs.picky"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	o := serpcrypt(t, testPassphrase, "create", "--size", "3M", "-q", "--pbkdf-force-iterations", "1000", "--fs", "picky", filepath.Join(dir, "box"))
	if o.code != exitBad || !strings.Contains(o.stderr, "error: mkfs.picky failed (exit status 7): this disk is not to my taste") {
		t.Errorf("exit code %d\n%s", o.code, o.stderr)
	}
	if left := names(t, dir); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// TestMkfsDoesNotDiscard: it is told not to, and it could not.
func TestMkfsDoesNotDiscard(t *testing.T) {
	for name, flags := range map[string]string{"ext2": "nodiscard", "ext3": "nodiscard", "ext4": "nodiscard", "xfs": "-K", "btrfs": "-K", "f2fs": "-t 0"} {
		if got := strings.Join(mkfsArguments(name), " "); !strings.Contains(got, flags) {
			t.Errorf("mkfs.%s gets %s, without %s", name, got, flags)
		}
	}
	needFuse(t)
	if _, err := exec.LookPath("fallocate"); err != nil {
		skip.Skip(t, "fallocate is not installed")
	}
	bin := t.TempDir()
	script := "#!/bin/sh\nfallocate --punch-hole --offset 0 --length 65536 \"$1\" && exit 0\necho it refuses >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "mkfs.holes"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	o := serpcrypt(t, testPassphrase, "create", "--size", "3M", "-q", "--pbkdf-force-iterations", "1000", "--fs", "holes", filepath.Join(t.TempDir(), "box"))
	if o.code != exitBad || !strings.Contains(o.stderr, "it refuses") {
		t.Errorf("exit code %d\n%s", o.code, o.stderr)
	}
}
