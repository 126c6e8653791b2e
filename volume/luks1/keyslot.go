package luks1

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"

	"serpcrypt/kdf"
	"serpcrypt/volume/keyslot"
	"serpcrypt/volume/luks"
)

// SealedSlot is a key slot that is ready to be written.
type SealedSlot struct {
	slot     int
	fields   Slot
	material []byte // encrypted
}

// SealSlot encrypts the volume key for a free slot. It changes nothing yet.
//
// When ctx is done it returns the error of that, as kdf.Derive does. Others are
// luks.ErrSlotUsed and a *luks.ParamError.
func (h *Header) SealSlot(ctx context.Context, slot int, key, passphrase []byte, iterations int) (*SealedSlot, error) {
	if err := luks.CheckIterations("iterations", iterations); err != nil {
		return nil, err
	}
	fields := h.Slots[slot]
	if fields.Active == SlotEnabled {
		return nil, luks.ErrSlotUsed
	}
	fields.Active = SlotEnabled
	fields.Iterations = uint32(iterations)
	rand.Read(fields.Salt[:])

	slotKey, err := kdf.PBKDF2(ctx, h.Hash.String(), h.slotJob(&fields, passphrase))
	if err != nil {
		return nil, err
	}
	defer slotKey.Close()
	material, err := h.material(&fields).Seal(key, slotKey.Bytes())
	if err != nil {
		return nil, fmt.Errorf("luks1: %w", err)
	}
	return &SealedSlot{slot, fields, material}, nil
}

// WriteSlot puts a sealed slot in use: its material onto the disk, its fields into
// h, which is to be saved. The error is a *luks.FieldError, or that of the store.
func (h *Header) WriteSlot(store luks.Store, s *SealedSlot) error {
	if err := luks.WriteMaterial(store, s.slot, s.material, s.fields.MaterialOffset()); err != nil {
		return err
	}
	h.Slots[s.slot] = s.fields
	return nil
}

// FillSlots overwrites the places of all slots' material with random bytes.
func (h *Header) FillSlots(w io.WriterAt) error {
	random := make([]byte, h.MaterialSize())
	for i := range h.Slots {
		rand.Read(random)
		if _, err := w.WriteAt(random, h.Slots[i].MaterialOffset()); err != nil {
			return fmt.Errorf("luks1: key slot %d: %w", i, err)
		}
	}
	return nil
}

// material is under the volume's own cipher and hash.
func (h *Header) material(s *Slot) *keyslot.Material {
	return &keyslot.Material{Offset: s.MaterialOffset(), KeyLen: int(h.KeyBytes), Hash: h.Hash.String(), Cipher: h.Spec()}
}

// slotJob is the derivation of a slot's key.
func (h *Header) slotJob(s *Slot, passphrase []byte) kdf.Job {
	return kdf.Job{Password: passphrase, Salt: s.Salt[:], Iterations: int(s.Iterations), KeyLen: int(h.KeyBytes)}
}
