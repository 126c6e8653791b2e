package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// TestFileSystemFitsSectors: none of its blocks is smaller than a sector of the
// container, which no block device over that would let it write.
func TestFileSystemFitsSectors(t *testing.T) {
	needFuse(t)
	ext := func(p []byte) int { return 1024 << p[1024+24] } // s_log_block_size
	fat := func(p []byte) int { return int(binary.LittleEndian.Uint16(p[11:])) }
	for _, c := range []struct {
		name, size string
		blockSize  func(volume []byte) int // by its superblock
	}{
		{"ext2", "8M", ext},
		{"ext4", "32M", ext},
		{"vfat", "40M", fat},
		{"ntfs", "40M", fat},
		{"xfs", "400M", func(p []byte) int { return int(binary.BigEndian.Uint16(p[102:])) }}, // sb_sectsize
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := findMkfs(c.name); err != nil {
				skip.Skip(t, err.Error())
			}
			for _, sectorSize := range []int{512, 4096} {
				box := newBox(t, "--size", c.size, "--sparse", "--sector-size", strconv.Itoa(sectorSize), "--fs", c.name)
				cmd := exec.Command("sh", "-c", `serpcrypt export "$0" - | head -c 4096`, box)
				cmd.Stdin = strings.NewReader(testPassphrase)
				p := []byte(runCommand(t, cmd).must(t, 0).stdout)
				if len(p) != 4096 {
					t.Fatalf("%d bytes of the volume", len(p))
				}
				if got := c.blockSize(p); got < sectorSize || got > 4096 {
					t.Errorf("sectors of %d bytes, and blocks of %d", sectorSize, got)
				}
			}
		})
	}
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
		if got := strings.Join(mkfsArguments(name, 512), " "); !strings.Contains(got, flags) {
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
