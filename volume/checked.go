package volume

import (
	"bytes"
	"fmt"
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

// writeMaterial writes the material of a key slot before a header names it.
func writeMaterial(s Store, slot int, material []byte, offset int64) error {
	if _, err := (checkedWriter{s}).WriteAt(material, offset); err != nil {
		return fmt.Errorf("volume: key slot %d: %w", slot, err)
	}
	return nil
}
