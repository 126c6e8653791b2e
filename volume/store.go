package volume

import (
	"errors"
	"io"

	"serpcrypt/volume/luks"
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

// Stores are where the parts of a container lie: both in one store, unless the
// header is detached. Data is nil where it does not matter; then nothing is said
// about the payload.
type Stores struct{ Header, Data Store }

// Attached returns the place of a container whose header is before its payload.
func Attached(s Store) Stores { return Stores{s, s} }

// detached reports whether the payload lies elsewhere than the header.
func (at Stores) detached() bool { return at.Header != at.Data }

// location is where a container lies, to the ends of its stores.
type location struct {
	Stores
	headerSize int64 // bytes
	dataSize   int64 // bytes, or luks.UnknownSize
}

// location returns the stores with the sizes that they have now.
func (at Stores) location() (location, error) {
	l := location{Stores: at, dataSize: luks.UnknownSize}
	var err error
	if l.headerSize, err = at.Header.Size(); err == nil && at.Data != nil {
		l.dataSize, err = at.Data.Size()
	}
	return l, err
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
