package luks

import (
	"bytes"
	"fmt"
	"io"
)

// Store is where a header lies. Sync returns when all that was written will
// survive a power failure.
type Store interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// UnknownSize stands for the size of a payload's store that nobody has named.
const UnknownSize = -1

// WriteChecked writes p at a place, in bytes, syncs that, and reads it back before
// anybody relies on it. Errors: that of the store, and a *FieldError about the
// field, and the slot or NoSlot, if it is not there then.
func WriteChecked(s Store, p []byte, offset int64, field string, slot int) error {
	_, err := s.WriteAt(p, offset)
	if err == nil {
		err = s.Sync()
	}
	if err != nil {
		return fmt.Errorf("luks: %s: %w", place(field, slot, offset), err)
	}
	return CheckWritten(s, p, offset, field, slot)
}

// WriteMaterial is WriteChecked for the material of a key slot, which comes before
// the header that names it.
func WriteMaterial(s Store, slot int, material []byte, offset int64) error {
	return WriteChecked(s, material, offset, "key material", slot)
}

// CheckWritten is the part of WriteChecked that reads.
func CheckWritten(s io.ReaderAt, p []byte, offset int64, field string, slot int) error {
	got := make([]byte, len(p))
	if _, err := io.ReadFull(io.NewSectionReader(s, offset, int64(len(p))), got); err != nil {
		return fmt.Errorf("luks: %s: %w", place(field, slot, offset), err)
	}
	if !bytes.Equal(got, p) {
		return BadField(field, slot, offset, "read back it is not what was written")
	}
	return nil
}
