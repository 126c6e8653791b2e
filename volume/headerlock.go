package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// HeaderLocker is a Store that keeps other processes, ours and cryptsetup's,
// from writing a header while it is read or written. The lock is for that short
// time only: who holds it for longer keeps everybody from even looking.
type HeaderLocker interface {
	// LockHeader waits a little for who has the lock now. The error is ErrBusy if
	// that was in vain, and that of ctx.
	LockHeader(ctx context.Context, kind HeaderLock) (unlock func(), err error)
}

// HeaderLock is a kind of lock.
type HeaderLock int

const (
	SharedLock    HeaderLock = unix.LOCK_SH // to read
	ExclusiveLock HeaderLock = unix.LOCK_EX // to write
)

// lockHeader locks the header of a store that knows how to.
func lockHeader(ctx context.Context, s Store, kind HeaderLock) (unlock func(), err error) {
	if locker, can := s.(HeaderLocker); can {
		return locker.LockHeader(ctx, kind)
	}
	return func() {}, nil
}

const lockInterval = 20 * time.Millisecond

// lockPatience is longer than any update takes.
var lockPatience = 5 * time.Second

// deviceLockFolder is where cryptsetup has the locks of block devices.
var deviceLockFolder = "/run/cryptsetup"

// LockHeader implements HeaderLocker by flock, as cryptsetup does: on the file
// itself, or for a block device on a file that stands for it. Two goroutines must
// not lock the same File. A file whose path leads to another one by now cannot be
// locked to write: the error is ErrChanged.
func (f *File) LockHeader(ctx context.Context, kind HeaderLock) (func(), error) {
	if f.isDevice {
		return f.lockDeviceHeader(ctx, kind)
	}
	if err := flock(ctx, f.file, kind); err != nil {
		return nil, err
	}
	if kind == ExclusiveLock && f.isReplaced() {
		unflock(f.file)
		return nil, fmt.Errorf("%w: %s is another file now, or gone", ErrChanged, f.path)
	}
	return func() { unflock(f.file) }, nil
}

// flock tries until it has the lock or lockPatience is over.
func flock(ctx context.Context, file *os.File, kind HeaderLock) error {
	deadline := time.Now().Add(lockPatience)
	for {
		err := unix.Flock(int(file.Fd()), int(kind)|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("volume: %s: the header cannot be locked: %w", file.Name(), err)
		case time.Now().After(deadline):
			return fmt.Errorf("%w: the header of %s is locked by another program", ErrBusy, file.Name())
		}
		select {
		case <-time.After(lockInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unflock fails only for a file that is closed, which has no lock anymore.
func unflock(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_UN) }

// lockDeviceHeader locks the file that stands for the device. Who may not use
// it, which is for root alone, reads without: a header that is being written
// then shows itself by its checksum.
func (f *File) lockDeviceHeader(ctx context.Context, kind HeaderLock) (func(), error) {
	for {
		file, err := f.openDeviceLock()
		if kind == SharedLock && errors.Is(err, fs.ErrPermission) {
			return func() {}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("volume: %s: the header cannot be locked: %w", f.file.Name(), err)
		}
		if err := flock(ctx, file, kind); err != nil {
			file.Close()
			return nil, err
		}
		if isStill(file) {
			return func() { releaseDeviceLock(file) }, nil
		}
		file.Close() // its last user has removed it meanwhile
	}
}

func (f *File) openDeviceLock() (*os.File, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.file.Fd()), &stat); err != nil {
		return nil, err
	}
	if err := os.Mkdir(deviceLockFolder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	name := fmt.Sprintf("L_%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	return os.OpenFile(filepath.Join(deviceLockFolder, name), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
}

// isStill reports whether the file's name still leads to it.
func isStill(file *os.File) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(file.Name())
	return err == nil && os.SameFile(open, named)
}

// releaseDeviceLock unlocks, and removes the file unless others have it locked.
func releaseDeviceLock(file *os.File) {
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && isStill(file) {
		_ = os.Remove(file.Name())
	}
	file.Close()
}
