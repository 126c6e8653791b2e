package main

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"serpcrypt/internal/skip"
	"serpcrypt/volume"
)

// TestEveryChecker: each finds nothing in what its mkfs made, writes nothing, and
// finds that much of it has been overwritten.
func TestEveryChecker(t *testing.T) {
	for _, c := range checkers {
		name := c.fileSystems[len(c.fileSystems)-1]
		t.Run(name, func(t *testing.T) {
			if _, err := findProgram(c.program); err != nil {
				skip.Skip(t, err.Error())
			}
			v := newCheckedVolume(t, name)
			check, err := newFsck(v, "box")
			if err != nil {
				t.Fatal(err)
			}
			if r, err := check.run(t.Context(), v); err != nil || r.faulty || r.exitCode != 0 || r.journal || r.verdict("box") != nil {
				t.Fatalf("sound, and %s says %+v (%v)", check.command(), r, err)
			}
			// Not the superblocks, which lie in 4 KiB from 0 and from 64 KiB on; but
			// the root folder of erofs, which is there, too.
			parts := [][2]int64{{4 << 10, 64 << 10}, {68 << 10, min(48<<20, v.Size())}}
			if name == "erofs" {
				parts = [][2]int64{{1152, 4 << 10}}
			}
			for _, part := range parts {
				garbage := make([]byte, part[1]-part[0])
				rand.Read(garbage)
				if _, err := v.WriteAt(garbage, part[0]); err != nil {
					t.Fatal(err)
				}
			}
			r, err := check.run(t.Context(), v)
			if err != nil || !r.faulty || r.result() != volume.Failed {
				t.Fatalf("overwritten, and %s says %+v (%v)", check.command(), r, err)
			}
			if code, hint := explain(r.verdict("box")); code != exitBad || hint == "" {
				t.Errorf("the verdict is %d, %q", code, hint)
			}
		})
	}
}

// newCheckedVolume makes a volume with a file system: erofs is made elsewhere, of
// a folder.
func newCheckedVolume(t *testing.T, fileSystem string) *volume.Volume {
	t.Helper()
	if fileSystem != "erofs" {
		return newVolume(t, fileSystem, "")
	}
	mkfs, err := findMkfs(fileSystem)
	if err != nil {
		skip.Skip(t, err.Error())
	}
	image := filepath.Join(t.TempDir(), "image")
	runCommand(t, exec.Command(mkfs, image, "testdata")).must(t, 0)
	v := newVolume(t, "vfat", "")
	if _, err := v.WriteAt([]byte(content(t, image)), 0); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestVerifyFsck is the whole of it, by the command.
func TestVerifyFsck(t *testing.T) {
	needFuse(t)
	for _, program := range []string{"mkfs.ext4", "e2fsck"} {
		if _, err := findProgram(program); err != nil {
			skip.Skip(t, err.Error())
		}
	}
	box := newBox(t, "--size", "8M", "--fs", "ext4")
	before := content(t, box)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	o := serpcrypt(t, testPassphrase, "verify", "--fsck", box).must(t, exitOK)
	if !strings.Contains(o.stdout, "  fsck         passed   ext4 by e2fsck -f -n\n") {
		t.Errorf("verify says\n%s", o.stdout)
	}
	if o := serpcrypt(t, testPassphrase, "verify", box).must(t, exitOK); strings.Contains(o.stdout, "fsck") {
		t.Errorf("without --fsck, verify says\n%s", o.stdout)
	}

	// A free block that is marked as used, and the other way round.
	flipPlaintext(t, box, func(plain []byte) { copy(plain[4096:], make([]byte, 4096)) })
	damaged := content(t, box)
	if damaged == before {
		t.Fatal("nothing has been damaged")
	}
	o = serpcrypt(t, testPassphrase, "verify", "--fsck", box).must(t, exitBad)
	if !strings.Contains(o.stdout, "  fsck         failed   ext4 by e2fsck -f -n\n      e2fsck ") {
		t.Errorf("verify says\n%s", o.stdout)
	}
	if !strings.Contains(o.stderr, "error: e2fsck finds faults in the ext4 in "+box) || !strings.Contains(o.stderr, "hint: "+hintRaw) {
		t.Errorf("verify says\n%s", o.stderr)
	}
	var report verifyDocument
	o = serpcrypt(t, testPassphrase, "verify", "--fsck", "--json", box).must(t, exitBad)
	if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
		t.Fatal(err)
	}
	if f := report.Fsck; report.OK || f == nil || f.Result != volume.Failed || f.ExitCode == 0 || f.Command != "e2fsck -f -n" || f.Output == "" || strings.Contains(f.Output, tmp) {
		t.Errorf("verify --json says\n%s", o.stdout)
	}
	if content(t, box) != damaged {
		t.Error("checking has written to the container")
	}
	if left := names(t, tmp); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// flipPlaintext changes the plaintext of a container by export and import.
func flipPlaintext(t *testing.T, box string, change func(plain []byte)) {
	t.Helper()
	plain := filepath.Join(t.TempDir(), "plain")
	serpcrypt(t, testPassphrase, "export", box, plain).must(t, exitOK)
	b, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	change(b)
	if err := os.WriteFile(plain, b, 0o600); err != nil {
		t.Fatal(err)
	}
	serpcrypt(t, testPassphrase, "import", "-q", plain, box).must(t, exitOK)
}

// TestFsckWithJournal: changes that wait in the journal are no damage, and who
// is told of faults is told of them.
func TestFsckWithJournal(t *testing.T) {
	if _, err := findProgram("e2fsck"); err != nil {
		skip.Skip(t, err.Error())
	}
	v := newVolume(t, "ext3", "") // whose superblock has no checksum
	check, err := newFsck(v, "box")
	if err != nil {
		t.Fatal(err)
	}
	const incompatible, fileTypes, needsRecovery = 1024 + 0x60, 0x2, 0x4
	if _, err := v.WriteAt([]byte{fileTypes | needsRecovery}, incompatible); err != nil {
		t.Fatal(err)
	}
	r, err := check.run(t.Context(), v)
	if err != nil || !r.journal || r.exitCode != 0 || r.verdict("box") != nil {
		t.Errorf("%+v (%v)", r, err)
	}

	if _, err := v.WriteAt(make([]byte, 1024), 4096); err != nil { // a bitmap
		t.Fatal(err)
	}
	r, err = check.run(t.Context(), v)
	if err != nil || !r.journal || r.exitCode == 0 {
		t.Fatalf("%+v (%v)", r, err)
	}
	err = r.verdict("box")
	code, hint := explain(err)
	if code != exitBad || !strings.HasSuffix(err.Error(), "perhaps they are only that its journal has not been replayed") || !strings.HasPrefix(hint, "open and close it") {
		t.Errorf("%v, with code %d and hint %q", err, code, hint)
	}
}

// TestXFSRepairTellsOfItsLog: by these words its faults are known for what they
// may be.
func TestXFSRepairTellsOfItsLog(t *testing.T) {
	needMounts(t)
	for _, program := range []string{"mkfs.xfs", "xfs_repair", "xfs_io"} {
		if _, err := findProgram(program); err != nil {
			skip.Skip(t, err.Error())
		}
	}
	if os.Geteuid() != 0 || !kernelMounts("xfs") {
		skip.Skip(t, "only root can mount xfs, if the kernel has it")
	}
	dir := t.TempDir()
	script := `PATH=$PATH:/usr/sbin:/sbin; set -e; cd "$0"
		truncate -s 320M image; mkfs.xfs -q image; mkdir box; mount -o loop image box
		mkdir box/a box/b; echo change >box/a/file; xfs_io -x -c "shutdown -f" box; umount box; rmdir box`
	runCommand(t, exec.Command("unshare", "--mount", "sh", "-c", script, dir)).must(t, 0)
	path, err := findProgram("xfs_repair")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checkers {
		if c.program == "xfs_repair" {
			said, err := runOn(t.Context(), path, append(c.args, filepath.Join(dir, "image"))...)
			if err == nil || !strings.Contains(said, c.unreplayed) {
				t.Errorf("without %q, %v:\n%s", c.unreplayed, err, said)
			}
		}
	}
}

// TestFsckCannot: what stands in the way is told before the payload is read.
func TestFsckCannot(t *testing.T) {
	needFuse(t)
	o := serpcrypt(t, testPassphrase, "verify", "--fsck", newBox(t)).must(t, exitBad)
	if !strings.Contains(o.stderr, "holds no file system that is known, so --fsck has nothing to check") || o.stdout != "" {
		t.Errorf("verify says\n%s%s", o.stdout, o.stderr)
	}
	if _, err := exec.LookPath("mksquashfs"); err == nil {
		image := filepath.Join(t.TempDir(), "image")
		runCommand(t, exec.Command("mksquashfs", t.TempDir(), image, "-quiet", "-no-progress")).must(t, 0)
		box := newBox(t)
		serpcrypt(t, testPassphrase, "import", image, box).must(t, exitOK)
		o := serpcrypt(t, testPassphrase, "verify", "--fsck", box).must(t, exitBad)
		if !strings.Contains(o.stderr, "no program is known that checks squashfs") {
			t.Errorf("verify says\n%s%s", o.stdout, o.stderr)
		}
	}
	if _, err := findMkfs("ext4"); err != nil {
		skip.Skip(t, err.Error())
	}
	box := newBox(t, "--size", "8M", "--fs", "ext4")
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(testPassphrase), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := hiding(t, `box=$1 key=$2; PATH=$PATH:/usr/sbin:/sbin; mount --bind /dev/null "$(command -v e2fsck)" && exec serpcrypt verify --fsck -d "$key" "$box"`, box, key)
	o = runCommand(t, cmd).must(t, exitBad)
	if want := "error: e2fsck, which checks ext4, is not installed\nserpcrypt: hint: install it (Debian, Ubuntu: apt-get install e2fsprogs)\n"; !strings.HasSuffix(o.stderr, want) || o.stdout != "" {
		t.Errorf("verify says\n%s%s", o.stdout, o.stderr)
	}
}
