package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"serpcrypt/internal/fsprobe"
	"serpcrypt/internal/skip"
	"serpcrypt/volume"
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
		{"f2fs", "60M", func(p []byte) int { return 1 << p[1024+16] }},                       // log_blocksize
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

// diskSizes are in MiB, a little more than each file system takes for the least.
var diskSizes = map[string]int64{
	"ext2": 6, "ext3": 6, "ext4": 6, "vfat": 6, "exfat": 6, "ntfs": 6, "udf": 6,
	"f2fs": 60, "btrfs": 120, "nilfs2": 140, "xfs": 320,
}

// newVolume makes an empty volume with a file system in it.
func newVolume(t *testing.T, fileSystem, label string) *volume.Volume {
	t.Helper()
	needFuse(t)
	mkfs, err := findMkfs(fileSystem)
	if err != nil {
		skip.Skip(t, err.Error())
	}
	const mib, headerMiB = 1 << 20, 16
	path := filepath.Join(t.TempDir(), "box")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, (headerMiB+diskSizes[fileSystem])*mib); err != nil {
		t.Fatal(err)
	}
	file, err := volume.OpenFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	params := volume.Params{Iterations: 1000, SectorSize: 512}
	made, err := volume.Format(t.Context(), volume.Attached(file), []byte(testPassphrase), params)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	v, err := made.Open(volume.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	if err := makeFileSystem(t.Context(), mkfs, label, v); err != nil {
		if strings.Contains(err.Error(), "mount status") {
			skip.Skip(t, "mkfs.btrfs stumbles over mounts of other users: "+err.Error())
		}
		t.Fatal(err)
	}
	return v
}

// TestEveryMkfs: what each mkfs makes is as large as the volume and has the label.
func TestEveryMkfs(t *testing.T) {
	for name := range makers {
		t.Run(name, func(t *testing.T) {
			const label = "HOLIDAY"
			v := newVolume(t, name, label)
			found, err := fsprobe.Probe(v)
			if err != nil || found == nil || found.Name != name {
				t.Fatalf("it makes %v (%v)", found, err)
			}
			const slack = 2 << 20 // f2fs leaves out what is no whole segment
			if name != "udf" && (found.Size < v.Size()-slack || found.Size > v.Size()) {
				t.Errorf("%d bytes in a volume of %d", found.Size, v.Size())
			}
			// Near the beginning, in bytes or in UTF-16.
			beginning := make([]byte, min(8<<20, v.Size()))
			if _, err := v.ReadAt(beginning, 0); err != nil {
				t.Fatal(err)
			}
			wide := strings.Join(append(strings.Split(label, ""), ""), "\x00")
			if !bytes.Contains(beginning, []byte(label)) && !bytes.Contains(beginning, []byte(wide)) {
				t.Errorf("no label, by the flags %q", makers[name].arguments(512, label))
			}
		})
	}
}

// TestLabelThatDoesNotFit: the file system is made without, and that is said.
func TestLabelThatDoesNotFit(t *testing.T) {
	needFuse(t)
	for _, c := range []struct {
		fileSystem, label string
		want              bool
	}{
		{"ext4", "sixteen letters.", true},
		{"ext4", "seventeen letters", false},
		{"ext4", "Größe", true},
		{"vfat", "Groesse", true},
		{"vfat", "Größe", false}, // it asks the locale
		{"vfat", "a*b", false},
		{"exfat", "twelve chars", false},
		{"xfs", "thirteen char", false},
		{"none", "any", false},
	} {
		m := makers[c.fileSystem]
		if got := m.takes(c.label); got != c.want {
			t.Errorf("%s takes %q: %v", c.fileSystem, c.label, got)
		}
		if got := slices.Contains(m.arguments(512, c.label), c.label); got != c.want {
			t.Errorf("mkfs.%s gets %q", c.fileSystem, m.arguments(512, c.label))
		}
	}
	if _, err := findMkfs("vfat"); err != nil {
		skip.Skip(t, err.Error())
	}
	path := filepath.Join(t.TempDir(), "box")
	o := serpcrypt(t, testPassphrase, "create", "--size", "3M", "--pbkdf-force-iterations", "1000", "--fs", "vfat", "--label", "Größe", path).must(t, exitOK)
	if want := `serpcrypt: the file system gets no label: vfat has none like "Größe"`; !strings.Contains(o.stderr, want) {
		t.Errorf("create says\n%s", o.stderr)
	}
}

// TestMakesWhatOpenDoesNotKnow: whoever makes it hears of that at once.
func TestMakesWhatOpenDoesNotKnow(t *testing.T) {
	needFuse(t)
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "mkfs.odd"), []byte("#!/bin/sh\necho odd | dd of=$1 conv=notrunc\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	o := serpcrypt(t, testPassphrase, "create", "--size", "3M", "-q", "--pbkdf-force-iterations", "1000", "--fs", "odd", filepath.Join(t.TempDir(), "box")).must(t, exitOK)
	if want := "warning: open does not know file system odd: " + hintRaw; !strings.Contains(o.stderr, want) {
		t.Errorf("create says\n%s", o.stderr)
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
	for name, flags := range map[string]string{"ext2": "nodiscard", "ext3": "nodiscard", "ext4": "nodiscard", "xfs": "-K", "btrfs": "-K", "f2fs": "-t 0", "nilfs2": "-K"} {
		if got := strings.Join(makers[name].arguments(512, ""), " "); !strings.Contains(got, flags) {
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
