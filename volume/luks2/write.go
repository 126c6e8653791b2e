package luks2

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
)

// Store is where a header lies.
type Store interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

var errLastUpdate = errors.New("the sequence number cannot go up any more")

// Save writes the header as the next state of what the store has: SeqID goes up
// beyond it, and each copy gets a new salt. The copies are written one after the
// other, the one that counts last; each is synced and read back before the other
// is touched. So at least one is always good, if one has been. A copy needs no
// order of its sectors: the first holds salt and checksum, and with any other than
// the new ones behind it the copy is not good.
//
// If a copy is not what was written, the error is a *FieldError. After an error the
// store may have the old state or the new one.
func (h *Header) Save(s Store) error {
	const anySize = math.MaxInt64 // where the store ends, reading does
	found, _ := Read(s, anySize)
	for _, c := range found.Copies {
		h.SeqID = max(h.SeqID, c.SeqID)
	}
	if h.SeqID == math.MaxUint64 {
		return fmt.Errorf("luks2: seqid: %w", errLastUpdate)
	}
	h.SeqID++

	order := []int64{0, h.Size}
	if found.Copies[primary].counts() && !found.Copies[secondary].counts() {
		order = []int64{h.Size, 0}
	}
	var copies [2][]byte
	for i, offset := range order {
		var salt [SaltSize]byte
		rand.Read(salt[:]) // never fails
		b, err := h.MarshalCopy(offset, salt)
		if err != nil {
			return err
		}
		written, err := ParseCopy(b, offset)
		if err != nil {
			return err
		}
		copies[i], h.places = b, written.places
	}
	for i, offset := range order {
		if err := saveCopy(s, copies[i], offset); err != nil {
			return err
		}
	}
	return nil
}

// counts reports whether the copy has the newest state.
func (c *Copy) counts() bool { return c.Fault == nil && !c.Stale }

func saveCopy(s Store, b []byte, offset int64) error {
	if _, err := s.WriteAt(b, offset); err != nil {
		return fmt.Errorf("luks2: header copy at byte %d: %w", offset, err)
	}
	if err := s.Sync(); err != nil {
		return fmt.Errorf("luks2: header copy at byte %d: %w", offset, err)
	}
	got := make([]byte, len(b))
	if _, err := io.ReadFull(io.NewSectionReader(s, offset, int64(len(b))), got); err != nil {
		return fmt.Errorf("luks2: header copy at byte %d: %w", offset, err)
	}
	if !bytes.Equal(got, b) {
		return newFault("magic", offset, "read back the copy is not what was written")
	}
	return nil
}
