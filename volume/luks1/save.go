package luks1

import (
	"bytes"
	"fmt"
	"io"
)

// Store is where a container lies.
type Store interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// headerSpace is what cryptsetup reads and writes of a header, and keeps key
// material out of, in bytes.
const headerSpace = 1024

// Save writes and syncs the header and reads it back; if that gives something
// else, the error is a *FieldError. The first sector, which makes the header
// one, comes last: a disk writes it whole or not at all, and what was written
// before, key material above all, is synced by then.
func (h *Header) Save(s Store) error {
	var space [headerSpace]byte
	copy(space[:], h.Marshal())
	for _, at := range []int64{SectorSize, 0} {
		if _, err := s.WriteAt(space[at:at+SectorSize], at); err != nil {
			return fmt.Errorf("luks1: header: %w", err)
		}
		if err := s.Sync(); err != nil {
			return fmt.Errorf("luks1: header: %w", err)
		}
	}
	var got [headerSpace]byte
	if _, err := io.ReadFull(io.NewSectionReader(s, 0, headerSpace), got[:]); err != nil {
		return fmt.Errorf("luks1: header: %w", err)
	}
	if !bytes.Equal(got[:], space[:]) {
		return &FieldError{"header", noSlot, 0, "read back it is not what was written"}
	}
	return nil
}
