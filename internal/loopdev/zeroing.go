package loopdev

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrZeroing: the kernel does not stop to zero by punching holes.
var ErrZeroing = errors.New("loopdev: this kernel does not tell discarding from zeroing")

// searchBytes is how far StopZeroing looks for a sector of zeros.
const searchBytes = 64 << 20

// StopZeroing makes the kernel zero parts of the device by writing zeros.
//
// The loop driver turns both "discard this" and "zero this" into a hole
// punched in the backing file. File systems count on zeros after the second,
// so if a hole in the backing file does not read as zeros, and discards are
// to get through all the same, zeroing has to be stopped first.
//
// The driver never tries it again once the backing file has refused
// FALLOC_FL_ZERO_RANGE with EOPNOTSUPP (Linux 6.8 and later,
// drivers/block/loop.c). So this asks for zeros where there are zeros already:
// the kernel falls back to writing them, and the content stays as it is.
func (d *Device) StopZeroing() error {
	fd := int(d.file.Fd())
	size, err := unix.IoctlGetInt(fd, unix.BLKSSZGET)
	if err != nil {
		return fmt.Errorf("loopdev: sector size of %s: %w", d.Path, err)
	}
	off, err := d.findZeros(int64(size))
	if err != nil {
		return err
	}
	byteRange := [2]uint64{uint64(off), uint64(size)}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.BLKZEROOUT, uintptr(unsafe.Pointer(&byteRange))); errno != 0 {
		return fmt.Errorf("loopdev: zero a part of %s: %w", d.Path, errno)
	}
	limit, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(d.Path), "queue/write_zeroes_max_bytes"))
	if err != nil {
		return fmt.Errorf("loopdev: %w", err)
	}
	if strings.TrimSpace(string(limit)) != "0" {
		return ErrZeroing
	}
	return nil
}

// findZeros returns the offset of a sector that is all zeros.
func (d *Device) findZeros(sectorSize int64) (int64, error) {
	sector, zeros := make([]byte, sectorSize), make([]byte, sectorSize)
	for off := int64(0); off < searchBytes; off += sectorSize {
		_, err := d.file.ReadAt(sector, off)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("loopdev: %w", err)
		}
		if string(sector) == string(zeros) {
			return off, nil
		}
	}
	return 0, fmt.Errorf("%w: no zeros to try it with", ErrZeroing)
}
