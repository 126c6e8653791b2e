package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/load"
	"serpcrypt/internal/loopdev"
	"serpcrypt/volume"
)

// nullCipher copies in place of a cipher. What is left is the cost of all else.
type nullCipher struct{}

func (nullCipher) Encrypt(dst, src []byte, _ uint64) { copy(dst, src) }
func (nullCipher) Decrypt(dst, src []byte, _ uint64) { copy(dst, src) }
func (nullCipher) Wipe()                             {}

// lane is a store with a volume, which the front end shows as a file. In its
// place come other volumes over the same store, which has to make sense to all.
//
// None of its files has a name for long, and those that it serves itself are
// open in other processes only. So nothing is left when the process ends,
// however it does: one that has a file open which it serves waits for itself.
type lane struct {
	store *volume.File
	now   atomic.Pointer[volume.Volume]
	mount *fusefs.Server
}

// newLane makes a store of so many bytes.
func newLane(size int64) (*lane, error) {
	folder, _, err := load.Folder(size)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "store")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		return nil, err
	}
	store, err := volume.OpenFile(path, false)
	return &lane{store: store}, err
}

// show returns the file that shows a volume, to be closed soon.
func (l *lane) show(v *volume.Volume) (*os.File, error) {
	l.now.Store(v)
	dir, err := os.MkdirTemp("", "serpcrypt-bench-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(dir)
	if l.mount, err = fusefs.Mount(dir, (*shown)(l), fusefs.Options{Source: "serpcrypt-bench"}); err != nil {
		return nil, err
	}
	f, err := openServed(filepath.Join(dir, fusefs.FileName))
	return f, errors.Join(err, fusefs.Unmount(dir, true))
}

// openServed keeps the runtime's poller away from a file that this process
// serves.
func openServed(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// close waits for the kernel, which lets go of the loop device's file a little
// after the file system is gone.
func (l *lane) close() error {
	var err error
	if l.mount != nil {
		select {
		case <-l.mount.Ended():
		case <-time.After(longestEnd):
			err = errors.New("volume: a mount does not end")
		}
	}
	return errors.Join(err, l.store.Close())
}

// makeExt4 makes a file system in the file at path, over a loop device, and in it
// an empty file, to be closed soon.
func makeExt4(path string) (*os.File, error) {
	loop, err := loopdev.Attach(path, loopdev.Options{})
	if err != nil {
		return nil, err
	}
	defer loop.Close()
	mkfs, err := findMkfs()
	if err != nil {
		return nil, err
	}
	// The blocks are whole sectors of the volume.
	size := strconv.Itoa(volumeSectorSize)
	if said, err := exec.Command(mkfs, "-q", "-F", "-m", "0", "-b", size, "-E", "nodiscard,lazy_itable_init=0", loop.Path).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mkfs.ext4: %w: %s", err, strings.TrimSpace(string(said)))
	}
	dir, err := os.MkdirTemp("", "serpcrypt-bench-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(dir)
	if err := unix.Mount(loop.Path, dir, "ext4", 0, ""); err != nil {
		return nil, fmt.Errorf("mount %s: %w", loop.Path, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "file"), os.O_RDWR|os.O_CREATE, 0o600)
	return f, errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH))
}

// findMkfs looks where system programs are too.
func findMkfs() (string, error) {
	for _, name := range []string{"mkfs.ext4", "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoMkfs
}

var errNoMkfs = errors.New("mkfs.ext4 is not installed")

// shown is the volume of a lane as the front end sees it.
type shown lane

func (s *shown) ReadAt(p []byte, off int64) (int, error)  { return s.now.Load().ReadAt(p, off) }
func (s *shown) WriteAt(p []byte, off int64) (int, error) { return s.now.Load().WriteAt(p, off) }
func (s *shown) Sync() error                              { return s.now.Load().Sync() }
func (s *shown) Size() int64                              { return s.now.Load().Size() }
func (s *shown) Discard(off, n int64) error               { return s.now.Load().Discard(off, n) }
