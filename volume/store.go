package volume

import (
	"errors"
	"io"
)

// Store is where a container lies. ReadAt and WriteAt are called concurrently,
// and follow io.ReaderAt and io.WriterAt. Sync returns when all that was
// written will survive a power failure. Size is in bytes.
type Store interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Size() (int64, error)
}

// HolePuncher is a Store that can give back space. What was there is lost, and
// reads as whatever the store likes.
type HolePuncher interface {
	PunchHole(off, length int64) error
}

// readFull fills p. A store that ends before is an error.
func readFull(s io.ReaderAt, p []byte, off int64) error {
	n, err := s.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// writeFull writes all of p.
func writeFull(s io.WriterAt, p []byte, off int64) error {
	n, err := s.WriteAt(p, off)
	if err == nil && n < len(p) {
		return io.ErrShortWrite
	}
	return err
}
