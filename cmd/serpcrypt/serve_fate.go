package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"serpcrypt/volume"
)

// fate says what has become of the files of a container that is open for writing,
// if what was written cannot be found in them any more. size is what the payload's
// file had when it was opened, in bytes.
func (f *container) fate(size int64) error {
	err := fileFate(f.data, size)
	if !f.isDetached() {
		return err
	}
	if headerErr := fileFate(f.header, 0); headerErr != nil {
		err = errors.Join(err, fmt.Errorf("header: %w", headerErr))
	}
	return err
}

func fileFate(f *volume.File, size int64) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.OSFile().Fd()), &stat); err != nil {
		return err
	}
	switch {
	case f.IsDevice():
		return nil
	case stat.Nlink == 0:
		return errors.New("the file has been removed or replaced, and what was written to it is lost")
	case stat.Size < size:
		return fmt.Errorf("the file has been cut off at %d bytes, and what lay behind is lost", stat.Size)
	}
	return nil
}
