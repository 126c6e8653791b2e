package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/skip"
)

// witness is a disk that knows whether it held some bytes when it was synced.
type witness struct {
	unsteadyDisk
	wanted []byte
	seen   bool
}

func (w *witness) Sync() error {
	w.mu.Lock()
	w.seen = w.seen || bytes.Contains(w.content, w.wanted)
	w.mu.Unlock()
	return w.unsteadyDisk.Sync()
}

// TestDriversPassSyncOn: what a driver says is synced it has written before it
// synced the volume; and what it leaves when it is unmounted is sound.
func TestDriversPassSyncOn(t *testing.T) {
	needMounts(t)
	for i := range drivers {
		d := &drivers[i]
		if d.readOnly || d.blockDevice && os.Geteuid() != 0 {
			continue
		}
		t.Run(d.program, func(t *testing.T) {
			fileSystem := d.fileSystems[len(d.fileSystems)-1]
			if _, err := findProgram(d.program); err != nil {
				skip.Skip(t, err.Error())
			}
			dir := openFolder(t)
			e, box, image := runEntry{filepath.Join(dir, "run")}, filepath.Join(dir, "box"), filepath.Join(dir, "image")
			for _, folder := range []string{e.path, e.rawDir(), box} {
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			disk := &witness{unsteadyDisk: unsteadyDisk{content: newImage(t, image, fileSystem)}, wanted: []byte("to be kept")}
			server, err := fusefs.Mount(e.rawDir(), disk, fusefs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			o := &opening{container: "box", state: openState{FileSystem: fileSystem, Driver: d.program, MountPoint: box}}
			if err := o.mountByProgram(t.Context(), e, d); err != nil {
				t.Fatal(err)
			}
			if err := waitUsable(t.Context(), box); err != nil {
				t.Fatal(err)
			}
			// ntfs-3g keeps what is short elsewhere, and not as it is.
			const long = `yes "to be kept" | head -c 100000 | dd of="$0/file" conv=fsync status=none`
			runCommand(t, exec.Command("sh", "-c", long, box)).must(t, 0)
			disk.mu.Lock()
			seen := disk.seen
			disk.mu.Unlock()
			if !seen {
				t.Errorf("fsync came back, and %s had not synced the volume with what was written", d.program)
			}

			if err := fusefs.Unmount(box, false); err != nil {
				t.Fatal(err)
			}
			for range 500 {
				if server.OpenFiles() == 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if err := server.Unmount(); err != nil {
				t.Fatalf("%s does not end: %v", d.program, err)
			}
			if err := os.WriteFile(image, disk.content, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, c := range checkers {
				if c.fileSystems[len(c.fileSystems)-1] != fileSystem {
					continue
				}
				path, err := findProgram(c.program)
				if err != nil {
					skip.Skip(t, err.Error())
				}
				if said, err := runOn(t.Context(), path, append(c.args, image)...); err != nil {
					t.Errorf("%s: %v\n%s", c.program, err, said)
				}
			}
		})
	}
}

// newImage makes a file with a small file system, and returns what is in it.
func newImage(t *testing.T, path, fileSystem string) []byte {
	t.Helper()
	mkfs, err := findMkfs(fileSystem)
	if err != nil {
		skip.Skip(t, err.Error())
	}
	if err := os.WriteFile(path, make([]byte, diskSizes[fileSystem]<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	runCommand(t, exec.Command(mkfs, append(makers[fileSystem].arguments(sectorSize, ""), path)...)).must(t, 0)
	return []byte(content(t, path))
}

// expectedDriver says who should mount a file system for p: "raw" is nobody.
func (p *person) expectedDriver(t *testing.T, fileSystem string) string {
	t.Helper()
	kernel := fileSystem
	if kernel == "ntfs" {
		kernel = "ntfs3"
	}
	if p.uid == 0 && regexp.MustCompile(`(?m)\t`+kernel+`$`).MatchString(content(t, "/proc/filesystems")) {
		return "kernel"
	}
	program := map[string]string{
		"ext4": "fuse2fs", "ntfs": "ntfs-3g", "exfat": "mount.exfat-fuse", "vfat": "fusefat", "squashfs": "squashfuse", "erofs": "erofsfuse",
	}[fileSystem]
	path, err := findProgram(program)
	if program == "" || err != nil || program == "mount.exfat-fuse" && p.uid != 0 || isSetuid(t, path) && p.uid != 0 {
		return "raw"
	}
	return program
}

func isSetuid(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()&fs.ModeSetuid != 0
}

// TestAnyFileSystem opens each for root and for an ordinary user: mounted by
// whoever can, kept read-only if that is asked for, and the volume as it is where
// nobody can.
func TestAnyFileSystem(t *testing.T) {
	persons := newPersons(t)
	for _, fileSystem := range []string{"ext4", "vfat", "ntfs", "exfat", "xfs", "btrfs", "f2fs", "nilfs2", "udf", "squashfs", "erofs"} {
		t.Run(fileSystem, func(t *testing.T) {
			for _, p := range persons {
				p.makeBox(t, fileSystem)
				o := p.run(t, "serpcrypt open box.luks box").must(t, exitOK)
				state, want := p.state(t), p.expectedDriver(t, fileSystem)
				t.Logf("%s has it by %s", p.name, want)
				if want == "raw" {
					p.checkPlaintext(t, state, fileSystem, o.stderr)
				} else {
					p.checkFiles(t, state, want)
				}
				if left := leftovers(p.home); len(left) > 0 {
					t.Fatalf("left behind: %s", strings.Join(left, ", "))
				}
			}
		})
	}
}

// checkPlaintext looks at what stands in for a mount.
func (p *person) checkPlaintext(t *testing.T, state openState, fileSystem, said string) {
	t.Helper()
	volume := filepath.Join(state.MountPoint, fusefs.FileName)
	if !state.Raw || state.Driver != "" || state.FileSystem != fileSystem || state.ReadOnly {
		t.Errorf("open is %+v", state)
	}
	pattern := "^serpcrypt: warning: box.luks holds " + fileSystem + ", which nothing here mounts.*: " + volume + " is its plaintext\nserpcrypt: hint: .+\n$"
	if !regexp.MustCompile(pattern).MatchString(said) {
		t.Errorf("open says\n%s", said)
	}
	if o := p.run(t, "stat -c %s box/volume").must(t, 0); o.stdout != fmt.Sprintln(state.Size) {
		t.Errorf("%s bytes, want %d", o.stdout, state.Size)
	}
	p.run(t, "serpcrypt close box").must(t, exitOK)
}

// checkFiles writes where that can be, and reads it when opened again.
func (p *person) checkFiles(t *testing.T, state openState, driver string) {
	t.Helper()
	if state.Raw || state.Driver != driver {
		t.Fatalf("open is %+v, want it by %s", state, driver)
	}
	if state.ReadOnly == (p.run(t, "echo hello >box/new").code == 0) {
		t.Errorf("read-only is %v, and is not", state.ReadOnly)
	}
	if !state.ReadOnly {
		p.run(t, "mkdir box/folder && head -c 300000 /dev/urandom >random && cp random box/folder/random && sync box/folder/random").must(t, 0)
	}
	p.run(t, "serpcrypt close box").must(t, exitOK)
	before := content(t, p.container)

	p.run(t, "serpcrypt open -r box.luks box").must(t, exitOK)
	if !p.state(t).ReadOnly {
		t.Error("opened read-only, and is not")
	}
	if p.run(t, "echo bye >box/new").code == 0 || p.run(t, "touch box/newer").code == 0 {
		t.Error("opened read-only, and can be written")
	}
	switch {
	case !state.ReadOnly:
		p.run(t, "cmp random box/folder/random && test $(cat box/new) = hello").must(t, 0)
	case driver != "fusefat": // it cannot write, so its file system is empty
		p.run(t, "cmp tree/file box/file").must(t, 0)
	}
	p.run(t, "serpcrypt close box").must(t, exitOK)
	if content(t, p.container) != before {
		t.Error("opened read-only, and the container has changed")
	}
}

// TestNoFileSystem: what is no file system is shown as it is, too.
func TestNoFileSystem(t *testing.T) {
	p := newPersons(t)[0]
	p.run(t, "serpcrypt create -q --size 3M --pbkdf-force-iterations 1000 box.luks").must(t, exitOK)
	table := make([]byte, 512)
	copy(table[446:], "\x00   \x83   \x01\x00\x00\x00\x0A\x00\x00\x00")
	copy(table[510:], "\x55\xAA")
	if err := os.WriteFile(filepath.Join(p.home, "table"), table, 0o644); err != nil {
		t.Fatal(err)
	}
	p.run(t, "serpcrypt import -q table box.luks").must(t, exitOK)
	o := p.run(t, "serpcrypt open -o noatime box.luks box").must(t, exitOK)
	want := "serpcrypt: warning: box.luks holds MBR, and no file system: " + p.home + "/box/volume is its plaintext\n" +
		"serpcrypt: warning: the mount options noatime have no effect\n"
	if o.stderr != want {
		t.Errorf("open says\n%s", o.stderr)
	}
	p.run(t, "test -f box/volume && serpcrypt close box").must(t, exitOK)
}

// TestDriverMissing: an ordinary user without fuse2fs gets the plaintext, and
// hears what to install. Others get nothing, as nobody has agreed to that.
func TestDriverMissing(t *testing.T) {
	persons := newPersons(t)
	p := persons[len(persons)-1]
	path, err := findProgram(driverFuse2fs)
	if err != nil {
		skip.Skip(t, err.Error())
	}
	p.makeBox(t, "ext4")
	open := p.inside(t, "mount --bind /dev/null "+path,
		"serpcrypt open --allow-other box.luks box && stat -c %A box/volume && serpcrypt close box")
	o := runCommand(t, open).must(t, exitOK)
	want := "serpcrypt: warning: box.luks holds ext4, which nothing here mounts without root: " + p.home + "/box/volume is its plaintext\n" +
		"serpcrypt: hint: install it (Debian, Ubuntu: apt-get install fuse2fs), or work as root\n" +
		"serpcrypt: warning: --allow-other has no effect: nobody else is let in to the whole plaintext\n"
	if o.stderr != want || o.stdout != "-rw-------\n" {
		t.Errorf("open says\n%s%s", o.stderr, o.stdout)
	}
}

// TestSetuidDriver: a program that becomes root does not see the volume of a
// user, unless that is open to others.
func TestSetuidDriver(t *testing.T) {
	persons := newPersons(t)
	p := persons[len(persons)-1]
	path, err := findProgram("ntfs-3g")
	if err != nil {
		skip.Skip(t, err.Error())
	}
	if !isSetuid(t, path) {
		skip.Skip(t, "this ntfs-3g does not become root")
	}
	p.makeBox(t, "ntfs")
	o := p.run(t, "serpcrypt open box.luks box").must(t, exitOK)
	if !strings.HasSuffix(o.stderr, "hint: work as root, or, as ntfs-3g does so itself, use --allow-other\n") {
		t.Errorf("open says\n%s", o.stderr)
	}
	p.run(t, "serpcrypt close box").must(t, exitOK)

	allow := filepath.Join(filepath.Dir(p.home), "fuse.conf")
	if err := os.WriteFile(allow, []byte("user_allow_other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	session := p.inside(t, "mount --bind "+allow+" /etc/fuse.conf", `serpcrypt open --allow-other box.luks box &&
		serpcrypt status | grep "by ntfs-3g" && echo hello >box/file && cat box/file && serpcrypt close box`)
	if o := runCommand(t, session).must(t, exitOK); !strings.HasSuffix(o.stdout, "\nhello\n") {
		t.Errorf("it prints\n%s", o.stdout)
	}
}

func TestInstallHint(t *testing.T) {
	for fileSystem, want := range map[string]string{
		"ext4":  "install it (Debian, Ubuntu: apt-get install fuse2fs)",
		"exfat": "install it (Debian, Ubuntu: apt-get install exfat-fuse)",
		"erofs": "install it (Debian, Ubuntu: apt-get install erofsfuse); Debian 12 has no package of it",
	} {
		if hint := findDriver(fileSystem).install(); hint != want {
			t.Errorf("%s: %q, want %q", fileSystem, hint, want)
		}
	}
}
