package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// File is a Store in a regular file or a block device.
type File struct {
	file     *os.File
	isDevice bool
	readOnly bool
	path     string // that led to it; empty if it came as a descriptor
}

// OpenFile opens a container and locks it, for qemu too: for reading alone,
// together with others who do so, or else for nobody but us. The lock belongs to the
// open file description: it lasts until the last copy of the descriptor, also
// in other processes, is closed. Block devices are opened exclusively, so that
// they are not mounted or used by another driver either.
//
// Errors, beside those of the file system (fs.ErrNotExist, fs.ErrPermission):
// ErrBusy, a *FileError, and ErrReadOnly if readOnly would help.
func OpenFile(path string, readOnly bool) (*File, error) {
	f, err := openFile(path, readOnly, unix.O_EXCL)
	if err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		f.Close()
		return nil, err
	}
	if err := f.lock(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// PeekFile opens a container for reading without any lock, to look at its
// header while others use it.
func PeekFile(path string) (*File, error) { return openUnlocked(path, true) }

// EditFile opens a container without any lock, to change its header while others
// use the payload. Changes of the header lock that for as long as they take.
func EditFile(path string) (*File, error) { return openUnlocked(path, false) }

func openUnlocked(path string, readOnly bool) (*File, error) {
	f, err := openFile(path, readOnly, 0)
	if err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// NewFile takes over a descriptor that another process has opened and locked.
func NewFile(file *os.File) (*File, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("volume: %w", err)
	}
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return nil, fmt.Errorf("volume: %s: %w", file.Name(), err)
	}
	if reason := unfit(info.Mode()); reason != "" {
		return nil, &FileError{file.Name(), reason}
	}
	return &File{file: file, isDevice: !info.Mode().IsRegular(), readOnly: flags&unix.O_ACCMODE == unix.O_RDONLY}, nil
}

// openFile opens path with the extra flags if it is a block device.
func openFile(path string, readOnly bool, deviceFlags int) (*File, error) {
	// Opening a pipe would wait, opening some devices has effects: look first.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("volume: %w", err)
	}
	if reason := unfit(info.Mode()); reason != "" {
		return nil, &FileError{path, reason}
	}
	// The path may be another file by now. This flag keeps a pipe from waiting.
	flags := os.O_RDWR | unix.O_NONBLOCK
	if readOnly {
		flags = os.O_RDONLY | unix.O_NONBLOCK
	}
	if !info.Mode().IsRegular() {
		flags |= deviceFlags
	}
	file, err := os.OpenFile(path, flags, 0)
	switch {
	case errors.Is(err, unix.EBUSY):
		return nil, fmt.Errorf("%w: %s", ErrBusy, path)
	case !readOnly && (errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)):
		return nil, fmt.Errorf("%w: %w", ErrReadOnly, err)
	case err != nil:
		return nil, fmt.Errorf("volume: %w", err)
	}
	f, err := NewFile(file)
	if err == nil && f.isDevice && !readOnly {
		err = f.checkWritable()
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	f.path = path
	return f, nil
}

// isReplaced reports whether the path leads elsewhere by now, so that what is
// written to the file would be lost.
func (f *File) isReplaced() bool {
	if f.path == "" {
		return false
	}
	open, err := f.file.Stat()
	if err != nil {
		return false // writing will tell
	}
	named, err := os.Stat(f.path)
	return err != nil || !os.SameFile(open, named)
}

// CheckNamed returns ErrReplaced if the file's path leads elsewhere by now.
func (f *File) CheckNamed() error {
	if !f.isDevice && f.isReplaced() {
		return fmt.Errorf("%s: %w", f.path, ErrReplaced)
	}
	return nil
}

// checkWritable is for devices, which can be opened for writing also if they
// refuse it.
func (f *File) checkWritable() error {
	isReadOnly, err := unix.IoctlGetUint32(int(f.file.Fd()), unix.BLKROGET)
	if err != nil {
		return fmt.Errorf("volume: %s: %w", f.file.Name(), err)
	}
	if isReadOnly != 0 {
		return fmt.Errorf("%w: %s", ErrReadOnly, f.file.Name())
	}
	return nil
}

// unfit says why a file of this kind holds no container, or "".
func unfit(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a folder holds no container"
	case mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0:
		return ""
	}
	return "neither a regular file nor a block device"
}

// check refuses files without any content.
func (f *File) check() error {
	size, err := f.Size()
	if err == nil && size == 0 {
		err = &FileError{f.file.Name(), "empty"}
	}
	return err
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.file.ReadAt(p, off) }

// WriteAt implements io.WriterAt.
func (f *File) WriteAt(p []byte, off int64) (int, error) { return f.file.WriteAt(p, off) }

// Sync waits until all is on the disk.
func (f *File) Sync() error { return f.file.Sync() }

// Size returns the present length in bytes.
func (f *File) Size() (int64, error) {
	if f.isDevice {
		// A device's end is found by going there; the position is used by nobody.
		size, err := f.file.Seek(0, io.SeekEnd)
		if err != nil {
			return 0, fmt.Errorf("volume: %w", err)
		}
		return size, nil
	}
	info, err := f.file.Stat()
	if err != nil {
		return 0, fmt.Errorf("volume: %w", err)
	}
	return info.Size(), nil
}

// PunchHole implements HolePuncher. Where the file system or device cannot do
// it, the error is errors.ErrUnsupported.
func (f *File) PunchHole(off, length int64) error {
	const mode = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	if err := unix.Fallocate(int(f.file.Fd()), mode, off, length); err != nil {
		return fmt.Errorf("volume: %s: punch hole: %w", f.file.Name(), err)
	}
	return nil
}

// IsDevice reports whether this is a block device.
func (f *File) IsDevice() bool { return f.isDevice }

// OSFile returns the open file, to give its descriptor to another process.
func (f *File) OSFile() *os.File { return f.file }

// Close closes the file. It syncs nothing.
func (f *File) Close() error { return f.file.Close() }
