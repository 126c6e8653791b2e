package main

import (
	"errors"
	"fmt"
	"os"

	"serpcrypt/internal/newfile"

	"golang.org/x/sys/unix"
)

// sizedFile is a file whose length is chosen before it is written. Its errors
// say how much space there is.
type sizedFile struct {
	*os.File
	path string // what the person calls it
}

// setLength gives a new file the length of size bytes, and unless it is sparse the
// space for them.
func setLength(file *newfile.File, size int64, sparse bool) error {
	f := sizedFile{file.File, file.Path()}
	if sparse {
		return f.extend(size)
	}
	return f.reserve(size)
}

// reserve makes sure that size bytes fit on the disk and gives the file that
// length.
func (f sizedFile) reserve(size int64) error {
	err := f.allocate(0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.extend(size) // what is written later takes the space
	}
	return err
}

// reserveBehind makes sure that the disk has space for the file to grow to size
// bytes, and leaves its length.
func (f sizedFile) reserveBehind(size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = f.allocate(unix.FALLOC_FL_KEEP_SIZE, info.Size(), size-info.Size())
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// allocate takes space for the n bytes from off.
func (f sizedFile) allocate(mode uint32, off, n int64) error {
	if n == 0 {
		return nil
	}
	if free, err := f.freeSpace(); err == nil && n > free {
		return f.noSpace(n, free) // without filling the disk to find out
	}
	err := unix.Fallocate(int(f.Fd()), mode, off, n)
	for errors.Is(err, unix.EINTR) { // by any signal, on tmpfs
		err = unix.Fallocate(int(f.Fd()), mode, off, n)
	}
	switch {
	case errors.Is(err, unix.ENOSPC):
		free, _ := f.freeSpace()
		return f.noSpace(n, free)
	case errors.Is(err, unix.EFBIG):
		return f.tooLarge(off + n)
	case err != nil:
		return fmt.Errorf("reserve %s for %s: %w", formatSize(n), f.path, err)
	}
	return nil
}

// extend gives the file the length of size bytes without taking the space.
func (f sizedFile) extend(size int64) error {
	err := f.Truncate(size)
	if errors.Is(err, unix.EFBIG) || errors.Is(err, unix.EINVAL) {
		return f.tooLarge(size)
	}
	return err
}

func (f sizedFile) tooLarge(size int64) error {
	return failf(exitBad, "", "the file system cannot hold a file of %s", formatSize(size))
}

func (f sizedFile) noSpace(size, free int64) error {
	return failf(exitBad, hintNoSpace, "no space for %s at %s: %s are free", formatSize(size), f.path, formatSize(free))
}

func (f sizedFile) freeSpace() (int64, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return 0, err
	}
	if s.Blocks == 0 {
		return 0, fmt.Errorf("the file system at %s does not tell its free space", f.path)
	}
	return int64(s.Bavail) * int64(s.Frsize), nil
}
