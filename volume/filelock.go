package volume

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// span is a part of a file, in bytes; a length of 0 reaches to the end, wherever
// that may come to be.
type span struct{ start, length int64 }

// qemu tells by read locks on single bytes what it does with an image, and what
// it lets nobody else do meanwhile (qemu 7.2, block/file-posix.c; /proc/locks
// shows them).
const (
	qemuDoes    = 100
	qemuForbids = 200
	qemuEnd     = 300

	qemuRead   = 0
	qemuWrite  = 1
	qemuResize = 3
)

// Who writes holds a write lock on all of the file, which no other lock of any
// kind stands beside. Who reads holds read locks, and says the same to qemu.
var (
	writerLocks = []span{{0, 0}}
	readerLocks = []span{
		{0, qemuDoes},
		{qemuDoes + qemuRead, 1},
		{qemuForbids + qemuWrite, 1},
		{qemuForbids + qemuResize, 1},
		{qemuEnd, 0},
	}
	// A qemu that holds one of these does not get on with a reader.
	againstReaders = []span{
		{qemuDoes + qemuWrite, 1},
		{qemuDoes + qemuResize, 1},
		{qemuForbids + qemuRead, 1},
	}
)

// lock never waits.
func (f *File) lock() error {
	kind, locks := unix.F_WRLCK, writerLocks
	if f.readOnly {
		kind, locks = unix.F_RDLCK, readerLocks
	}
	for _, s := range locks {
		if err := f.fcntlLock(unix.F_OFD_SETLK, s.lock(kind)); err != nil {
			return err
		}
	}
	if !f.readOnly {
		return nil
	}
	// Only after ours, or two who come at once would both find nothing.
	for _, s := range againstReaders {
		other := s.lock(unix.F_WRLCK)
		if err := f.fcntlLock(unix.F_OFD_GETLK, other); err != nil {
			return err
		}
		if other.Type != unix.F_UNLCK {
			return f.busy()
		}
	}
	return nil
}

func (s span) lock(kind int) *unix.Flock_t {
	return &unix.Flock_t{Type: int16(kind), Whence: io.SeekStart, Start: s.start, Len: s.length}
}

func (f *File) fcntlLock(command int, lock *unix.Flock_t) error {
	err := unix.FcntlFlock(f.file.Fd(), command, lock)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return f.busy()
	}
	if err != nil {
		return fmt.Errorf("volume: %s: cannot be locked: %w", f.file.Name(), err)
	}
	return nil
}

func (f *File) busy() error { return fmt.Errorf("%w: %s", ErrBusy, f.file.Name()) }
