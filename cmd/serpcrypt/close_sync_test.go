package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"serpcrypt/internal/fusefs"
)

// unsteadyDisk keeps what is written, and knows how much of it a power failure
// would take.
type unsteadyDisk struct {
	mu       sync.Mutex
	content  []byte
	unsynced int // bytes
	syncs    int
}

func (d *unsteadyDisk) ReadAt(p []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return copy(p, d.content[off:]), nil
}

func (d *unsteadyDisk) WriteAt(p []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unsynced += len(p)
	return copy(d.content[off:], p), nil
}

func (d *unsteadyDisk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unsynced = 0
	d.syncs++
	return nil
}

func (d *unsteadyDisk) Size() int64 { return int64(len(d.content)) }

func (d *unsteadyDisk) Discard(off, n int64) error { return nil }

// counts returns how many bytes are not on the disk, and how often it synced.
func (d *unsteadyDisk) counts() (unsynced, syncs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unsynced, d.syncs
}

// TestCloseSyncs keeps a container on a disk that tells what has been synced:
// at the end of close that is everything, and before, what fsync was asked for.
func TestCloseSyncs(t *testing.T) {
	s := newOpenSession(t)
	s.run("serpcrypt", "create", "--size", "16M", "--fs", "ext4", "--pbkdf-force-iterations", "1000", "-d", "key", "box.luks")
	content, err := os.ReadFile(s.path("box.luks"))
	if err != nil {
		t.Fatal(err)
	}
	disk := &unsteadyDisk{content: content}
	if err := os.Mkdir(s.path("disk"), 0o700); err != nil {
		t.Fatal(err)
	}
	mount, err := fusefs.Mount(s.path("disk"), disk, fusefs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := mount.Unmount(); err != nil {
			t.Error(err)
		}
	}()
	container := filepath.Join("disk", fusefs.FileName)

	for _, c := range []struct{ kind, file string }{{"file system", "box/file"}, {"raw", "box/volume"}} {
		open := []string{"serpcrypt", "open", "-d", "key", container, "box"}
		if c.kind == "raw" {
			open = append(open, "--raw")
		} else if os.Geteuid() == 0 { // the kernel's ext4 would fill inode tables meanwhile
			open = append(open, "-o", "noinit_itable")
		}
		s.run(open...)
		s.run("dd", "if=/dev/urandom", "of="+c.file, "bs=64K", "count=16", "conv=notrunc,fsync", "status=none")
		if unsynced, syncs := disk.counts(); unsynced != 0 || syncs == 0 {
			t.Errorf("%s: after fsync, %d bytes are not on the disk, which synced %d times", c.kind, unsynced, syncs)
		}
		s.run("dd", "if=/dev/urandom", "of="+c.file, "bs=64K", "count=32", "conv=notrunc", "status=none")
		_, before := disk.counts()
		s.run("serpcrypt", "close", "box")
		if unsynced, syncs := disk.counts(); unsynced != 0 || syncs == before {
			t.Errorf("%s: after close, %d bytes are not on the disk, which synced %d times", c.kind, unsynced, syncs-before)
		}
	}
}
