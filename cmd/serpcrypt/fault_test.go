package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/faultfs"
	"serpcrypt/internal/skip"
)

// badDisk mounts a disk that fails on request at "disk".
func (s *openSession) badDisk() *faultfs.FS {
	s.t.Helper()
	for _, folder := range []string{"store", "disk"} {
		if err := os.Mkdir(s.path(folder), 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
	return faultfs.Start(s.t, s.path("store"), s.path("disk"))
}

// rawBlocks is how many blocks a raw volume of a test has at least.
const rawBlocks = 1024

// openRaw makes a container, opens it with --raw, and writes to all blocks.
func (s *openSession) openRaw(box string, options ...string) *blockWriter {
	s.t.Helper()
	create := []string{"serpcrypt", "create", "--size", "8M", "--pbkdf-force-iterations", "1000", "-d", "key", box}
	s.ends(0, append(create, options...)...)
	s.ends(0, "serpcrypt", "open", "--raw", "-d", "key", box, "box")
	seed := rand.Uint64()
	s.t.Logf("seed %d", seed)
	w, err := newBlockWriter(s.path("box/volume"), 0, rawBlocks, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// payload returns where the payload of a container begins, in bytes.
func payload(t *testing.T, box string) int64 {
	t.Helper()
	h, err := readHeaderOf(box)
	if err != nil {
		t.Fatal(err)
	}
	return h.PayloadOffset
}

// readsBlocks reads n blocks at once.
func readsBlocks(file *os.File, first, n int) error {
	_, err := file.ReadAt(make([]byte, n*deathBlock), int64(first)*deathBlock)
	return err
}

// want checks the error of something that must not hang.
func (s *openSession) want(what string, wanted error, do func() error) {
	s.t.Helper()
	if err := s.within(what, do); !errors.Is(err, wanted) {
		s.t.Errorf("%s: %v, want %v", what, err, wanted)
	}
}

// TestBadBlock: of a disk with a block that can be neither read nor written, all
// others can, and as soon as it can be, nothing of it has changed.
func TestBadBlock(t *testing.T) {
	const bad = 77
	s := newOpenSession(t)
	disk := s.badDisk()
	w := s.openRaw("disk/box.luks")
	from := payload(t, s.path("disk/box.luks")) + bad*deathBlock
	disk.Fail(
		faultfs.Fault{Op: faultfs.Read, From: from, To: from + deathBlock, Err: syscall.EIO},
		faultfs.Fault{Op: faultfs.Write, From: from, To: from + deathBlock, Err: syscall.EIO},
	)
	file := s.openFile("box/volume")
	write := func(first int) func() error { return func() error { return w.write(file, first, 1) } }
	s.want("read it", syscall.EIO, func() error { return readsBlocks(file, bad, 1) })
	s.want("read across it", syscall.EIO, func() error { return readsBlocks(file, bad-1, 3) })
	s.want("read all before", nil, func() error { return readsBlocks(file, 0, bad) })
	s.want("read all after", nil, func() error { return readsBlocks(file, bad+1, rawBlocks-bad-1) })
	s.want("write it", syscall.EIO, write(bad))
	s.want("write the one before", nil, write(bad-1))
	s.want("write the one after", nil, write(bad+1))
	s.want("write a part of it", syscall.EIO, func() error {
		_, err := file.WriteAt([]byte("part"), bad*deathBlock+100)
		return err
	})
	s.want("sync", nil, file.Sync)
	for b := range w.blocks {
		if b != bad {
			w.blocks[b].confirm()
		}
	}
	if disk.Hits() < 4 {
		t.Errorf("the disk failed %d times", disk.Hits())
	}
	disk.Fail()
	w.blocks[bad] = w.blocks[bad][:1] // what failed has changed nothing
	s.want("check", nil, w.check)
	s.want("write it at last", nil, write(bad))
	w.blocks[bad].confirm()
	s.want("check again", nil, w.check)
	file.Close()
	o := s.ends(4, "serpcrypt", "close", "box")
	if !strings.Contains(o.stderr, "2 writes failed") {
		t.Errorf("close says\n%s", o.stderr)
	}
	s.clean("disk")
	s.ends(0, "serpcrypt", "open", "--raw", "-d", "key", "disk/box.luks", "box")
	s.want("check after it was opened again", nil, w.check)
	s.ends(0, "serpcrypt", "close", "box")
}

// TestFailedSync: once a sync has failed, no other says that all is well, and nor
// does close.
func TestFailedSync(t *testing.T) {
	s := newOpenSession(t)
	disk := s.badDisk()
	s.openRaw("disk/box.luks")
	file := s.openFile("box/volume")
	s.want("sync of a good disk", nil, file.Sync)
	disk.Fail(faultfs.Fault{Op: faultfs.Sync, Err: syscall.EIO})
	s.want("sync of a bad disk", syscall.EIO, file.Sync)
	disk.Fail()
	s.want("sync afterwards", syscall.EIO, file.Sync)
	s.want("sync by somebody else", syscall.EIO, func() error { return syncPath(s.path("box/volume")) })
	if n := disk.Hits(); n != 1 {
		t.Errorf("the disk failed %d times", n)
	}
	file.Close()
	if o := s.ends(4, "serpcrypt", "close", "box"); !strings.Contains(o.stderr, "was not closed properly: sync: ") {
		t.Errorf("close says\n%s", o.stderr)
	}
	s.clean("disk")
}

// TestFullDisk fills the disk under a sparse container: who writes is told so, all
// else stays whole, and when there is space again, writing goes on.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can mount a small disk")
	}
	small := func(t *testing.T) *openSession {
		s := newOpenSession(t)
		if err := os.Mkdir(s.path("disk"), 0o700); err != nil {
			t.Fatal(err)
		}
		s.ends(0, "mount", "-t", "tmpfs", "-o", "size=48M", "none", "disk")
		t.Cleanup(func() { _ = unix.Unmount(s.path("disk"), unix.MNT_DETACH) })
		return s
	}
	filler := func(s *openSession) {
		s.ends(1, "dd", "if=/dev/zero", "of=disk/filler", "bs=64K", "status=none")
	}
	t.Run("raw", func(t *testing.T) {
		s := small(t)
		w := s.openRaw("disk/box.luks", "--sparse", "--size", "100M")
		filler(s)
		file := s.openFile("box/volume")
		far := int64(2 * rawBlocks * deathBlock) // never written before
		write := func() error { _, err := file.WriteAt(make([]byte, 1<<20), far); return err }
		s.want("write", syscall.ENOSPC, write)
		s.want("check", nil, w.check)
		s.want("write where there is space", nil, func() error { return w.write(file, 0, rawBlocks) })
		s.want("sync", nil, func() error { return w.sync(file) })
		s.ends(0, "rm", "disk/filler")
		s.want("write when there is space", nil, write)
		s.want("check", nil, w.check)
		file.Close()
		if o := s.ends(4, "serpcrypt", "close", "box"); !strings.Contains(o.stderr, "writes failed") {
			t.Errorf("close says\n%s", o.stderr)
		}
		s.clean("disk")
	})
	t.Run("ext4", func(t *testing.T) {
		s := small(t)
		s.ends(0, "serpcrypt", "create", "--sparse", "--size", "200M", "--fs", "ext4", "--pbkdf-force-iterations", "1000", "-d", "key", "disk/box.luks")
		open := func() { s.ends(0, "serpcrypt", "open", "-d", "key", "disk/box.luks", "box") }
		open()
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		w, err := newFileWriter(s.path("box/writer"), rand.New(rand.NewPCG(seed, 0)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.files {
			if err := w.replace(i); err != nil {
				t.Fatal(err)
			}
		}
		filler(s)
		if err := s.within("the writer", func() error { return w.work(t.Context()) }); !isOfDeath(err) {
			t.Errorf("the writer ends with %v", err)
		}
		s.ends(4, "serpcrypt", "close", "box")
		s.clean("disk")
		s.ends(0, "rm", "disk/filler")
		open()
		s.want("check", nil, w.check)
		s.ends(0, "serpcrypt", "close", "box")
		s.ends(0, "serpcrypt", "open", "--raw", "-r", "-d", "key", "disk/box.luks", "box")
		// It says 0 or, of a file system that noted its errors itself, 4.
		if err := exec.Command("e2fsck", "-fn", s.path("box/volume")).Run(); err != nil {
			t.Errorf("e2fsck: %v", err)
		}
		s.ends(0, "serpcrypt", "close", "box")
	})
}

// TestFileCutOff: what is left of the container can be used, the rest fails, and
// close tells of it.
func TestFileCutOff(t *testing.T) {
	s := newOpenSession(t)
	w := s.openRaw("box.luks")
	if err := os.Truncate(s.path("box.luks"), payload(t, s.path("box.luks"))+rawBlocks/2*deathBlock); err != nil {
		t.Fatal(err)
	}
	file := s.openFile("box/volume")
	s.want("read what is left", nil, func() error { return readsBlocks(file, 0, rawBlocks/2) })
	s.want("read behind", syscall.EIO, func() error { return readsBlocks(file, rawBlocks/2, 1) })
	s.want("read across the end", syscall.EIO, func() error { return readsBlocks(file, rawBlocks/2-1, 2) })
	s.want("write", nil, func() error { return w.write(file, 0, 64) })
	s.want("sync", nil, func() error { return w.sync(file) })
	w.blocks = w.blocks[:rawBlocks/2]
	s.want("check", nil, w.check)
	file.Close()
	if o := s.ends(4, "serpcrypt", "close", "box"); !strings.Contains(o.stderr, "cut off") {
		t.Errorf("close says\n%s", o.stderr)
	}
	s.clean()
}

// TestFileReplaced puts another file in the place of the container. The one that
// is open stays so, the other is left alone, and close tells that what was written
// is lost. It is not if the container was only moved.
func TestFileReplaced(t *testing.T) {
	for _, c := range []struct {
		name, command string
		code          int
	}{
		{"replaced", "cp box.luks other && mv other box.luks", 4},
		{"removed", "cp box.luks other && rm box.luks && mv other box.luks", 4},
		{"moved", "mv box.luks moved && cp moved box.luks", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newOpenSession(t)
			w := s.openRaw("box.luks")
			s.ends(0, "sh", "-c", c.command)
			before := content(t, s.path("box.luks"))
			file := s.openFile("box/volume")
			s.want("write", nil, func() error { return w.write(file, 0, rawBlocks) })
			s.want("sync", nil, func() error { return w.sync(file) })
			s.want("check", nil, w.check)
			file.Close()
			o := s.ends(c.code, "serpcrypt", "close", "box")
			if told := strings.Contains(o.stderr, "removed or replaced"); told != (c.code != 0) {
				t.Errorf("close says\n%s", o.stderr)
			}
			s.clean()
			if content(t, s.path("box.luks")) != before {
				t.Error("the other file has changed")
			}
			if c.code == 0 {
				s.ends(0, "serpcrypt", "open", "--raw", "-d", "key", "moved", "box")
				s.want("check after it was opened again", nil, w.check)
				s.ends(0, "serpcrypt", "close", "box")
			}
		})
	}
}

// TestReadOnlyMedium opens a container on a file system that takes no writes.
func TestReadOnlyMedium(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can mount it")
	}
	s := newOpenSession(t)
	s.ends(0, "mkdir", "medium")
	s.ends(0, "mount", "-t", "tmpfs", "none", "medium")
	t.Cleanup(func() { _ = unix.Unmount(s.path("medium"), unix.MNT_DETACH) })
	s.ends(0, "serpcrypt", "create", "--size", "40M", "--fs", "ext4", "--pbkdf-force-iterations", "1000", "-d", "key", "medium/clean.luks")
	s.ends(0, "cp", "medium/clean.luks", "medium/unclean.luks")
	for _, box := range []string{"medium/clean.luks", "medium/unclean.luks"} {
		s.ends(0, "serpcrypt", "open", "-d", "key", box, "box")
		s.ends(0, "sh", "-c", "cp key box/file && sync box/file box")
		if box == "medium/clean.luks" {
			s.ends(0, "serpcrypt", "close", "box")
		} else {
			s.killServer()
			s.ends(4, "serpcrypt", "close", "box")
		}
	}
	s.ends(0, "mount", "-o", "remount,ro", "medium")

	o := s.ends(0, "serpcrypt", "open", "-d", "key", "medium/clean.luks", "box")
	if !strings.Contains(o.stderr, ": it is opened read-only") {
		t.Errorf("open says\n%s", o.stderr)
	}
	s.ends(0, "cmp", "key", "box/file")
	s.want("write", syscall.EROFS, func() error { return os.WriteFile(s.path("box/new"), nil, 0o600) })
	s.ends(0, "serpcrypt", "close", "box")
	s.ends(0, "serpcrypt", "open", "--raw", "-d", "key", "medium/clean.luks", "box")
	s.ends(0, "e2fsck", "-fn", "box/volume")
	s.ends(0, "serpcrypt", "close", "box")

	// A journal cannot be replayed there.
	o = s.ends(4, "serpcrypt", "open", "-d", "key", "medium/unclean.luks", "box")
	if !strings.Contains(o.stderr, "hint: if it was not closed properly, open it once where it can be written, or with -o noload") {
		t.Errorf("open says\n%s", o.stderr)
	}
	s.clean("medium")
	s.ends(0, "serpcrypt", "open", "-o", "noload", "-d", "key", "medium/unclean.luks", "box")
	s.ends(0, "ls", "box")
	s.ends(0, "serpcrypt", "close", "box")
}
