package volume

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
)

// checkedWriter syncs what is written and reads it back before anybody relies
// on it. The error is a *FormatError if that gives something else.
type checkedWriter struct{ store Store }

func (w checkedWriter) WriteAt(p []byte, off int64) (int, error) {
	if err := writeFull(w.store, p, off); err != nil {
		return 0, err
	}
	if err := w.store.Sync(); err != nil {
		return 0, err
	}
	got := make([]byte, len(p))
	if err := readFull(w.store, got, off); err != nil {
		return 0, err
	}
	if !bytes.Equal(got, p) {
		return 0, &FormatError{Field: "key material", Slot: noSlot, Offset: off, Reason: "read back it is not what was written"}
	}
	return len(p), nil
}

// wipe overwrites ranges of bytes, as far as the store has them, with random
// ones, and syncs that.
func wipe(s Store, ranges ...byteRange) error {
	size, err := s.Size()
	if err != nil {
		return err
	}
	random := make([]byte, chunkSize)
	for _, r := range ranges {
		for at, to := r.from, min(r.to, size); at < to; at += chunkSize {
			p := random[:min(chunkSize, to-at)]
			rand.Read(p)
			if err := writeFull(s, p, at); err != nil {
				return fmt.Errorf("volume: key material: %w", err)
			}
		}
	}
	if err := s.Sync(); err != nil {
		return fmt.Errorf("volume: key material: %w", err)
	}
	return nil
}

// readRange returns bytes of a store. The error is a *FormatError if they are not
// there.
func readRange(s io.ReaderAt, r byteRange) ([]byte, error) {
	p := make([]byte, r.to-r.from)
	err := readFull(s, p, r.from)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, &FormatError{"key material", noSlot, r.from, fmt.Sprintf("it is cut off: not all of the %d bytes are there", len(p))}
	}
	if err != nil {
		return nil, fmt.Errorf("volume: key material: %w", err)
	}
	return p, nil
}
