package luks1

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
)

// ReadMaterial returns a slot's encrypted material.
func (h *Header) ReadMaterial(r io.ReaderAt, slot int) ([]byte, error) {
	material := make([]byte, h.MaterialSize())
	if _, err := io.ReadFull(io.NewSectionReader(r, h.Slots[slot].MaterialOffset(), int64(len(material))), material); err != nil {
		return nil, fmt.Errorf("luks1: key slot %d: %w", slot, err)
	}
	return material, nil
}

// WriteMaterial writes a slot's encrypted material, syncs it, and reads it back.
// The error is a *FieldError if that gives something else.
func (h *Header) WriteMaterial(s Store, slot int, material []byte) error {
	if _, err := s.WriteAt(material, h.Slots[slot].MaterialOffset()); err != nil {
		return fmt.Errorf("luks1: key slot %d: %w", slot, err)
	}
	if err := s.Sync(); err != nil {
		return fmt.Errorf("luks1: key slot %d: %w", slot, err)
	}
	got, err := h.ReadMaterial(s, slot)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, material) {
		return &FieldError{"key material", slot, h.Slots[slot].MaterialOffset(), "read back it is not what was written"}
	}
	return nil
}

// PutSlot is WriteSlot with all that makes sure of the material: what is left to
// do is to save h. The error may be a *FieldError, as that of WriteMaterial.
func (h *Header) PutSlot(s Store, sealed *SealedSlot) error {
	if err := h.WriteMaterial(s, sealed.slot, sealed.material); err != nil {
		return err
	}
	h.Slots[sealed.slot] = sealed.fields
	return nil
}

// WipeSlots overwrites the material of slots that the saved header has disabled
// with random bytes, syncs that, and clears their other fields in h.
func (h *Header) WipeSlots(s Store, slots ...int) error {
	random := make([]byte, h.MaterialSize())
	for _, slot := range slots {
		rand.Read(random)
		if _, err := s.WriteAt(random, h.Slots[slot].MaterialOffset()); err != nil {
			return fmt.Errorf("luks1: key slot %d: %w", slot, err)
		}
	}
	if err := s.Sync(); err != nil {
		return fmt.Errorf("luks1: key slots: %w", err)
	}
	for _, slot := range slots {
		h.Slots[slot].Iterations = 0
		h.Slots[slot].Salt = [SaltSize]byte{}
	}
	return nil
}
