package volume

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"serpcrypt/volume/luks"
)

// byteRange is a run of bytes in a store.
type byteRange struct{ from, to int64 }

func overlaps(r byteRange, others map[int]byteRange) bool {
	for _, other := range others {
		if r.from < other.to && other.from < r.to {
			return true
		}
	}
	return false
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
		return nil, luks.BadField("key material", luks.NoSlot, r.from, "it is cut off: not all of the %d bytes are there", len(p))
	}
	if err != nil {
		return nil, fmt.Errorf("volume: key material: %w", err)
	}
	return p, nil
}
