package luks1

import (
	"fmt"

	"serpcrypt/volume/luks"
)

// headerSpace is what cryptsetup reads and writes of a header, and keeps key
// material out of, in bytes.
const headerSpace = 1024

// Save writes and syncs the header and reads it back; if that gives something
// else, the error is a *luks.FieldError. The first sector, which makes the header
// one, comes last: a disk writes it whole or not at all, and what was written
// before, key material above all, is synced by then.
func (h *Header) Save(s luks.Store) error {
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
	return luks.CheckWritten(s, space[:], 0, "header", luks.NoSlot)
}
