package luks1

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/af"
)

var (
	// ErrMismatch says that a passphrase or volume key is not the right one.
	ErrMismatch = errors.New("luks1: the volume key does not match the digest")
	// ErrSlotUnused says that a slot cannot be opened by any passphrase.
	ErrSlotUnused = errors.New("luks1: the key slot is not in use")
	// ErrSlotUsed says that writing would destroy a key slot.
	ErrSlotUsed = errors.New("luks1: the key slot is in use")
)

// The methods below need a header that Validate has passed.

// OpenSlot returns the volume key out of a slot of the container r. The error
// is ErrMismatch for a wrong passphrase, which a damaged slot looks like, too.
func (h *Header) OpenSlot(r io.ReaderAt, slot int, passphrase []byte) (*secret.Buffer, error) {
	s := &h.Slots[slot]
	if s.Active != SlotEnabled {
		return nil, ErrSlotUnused
	}
	material := h.newMaterial()
	defer material.Close()
	if _, err := io.ReadFull(io.NewSectionReader(r, s.MaterialOffset(), int64(material.Len())), material.Bytes()); err != nil {
		return nil, fmt.Errorf("luks1: key slot %d: %w", slot, err)
	}
	cipher, err := h.slotCipher(s, passphrase)
	if err != nil {
		return nil, err
	}
	cipher.Decrypt(material.Bytes(), material.Bytes(), 0)
	cipher.Wipe()
	key := secret.New(int(h.KeyBytes))
	err = af.Merge(key.Bytes(), material.Bytes()[:h.KeyBytes*Stripes], Stripes, h.Hash.String())
	if err == nil {
		err = h.CheckKey(key.Bytes())
	}
	if err != nil {
		key.Close()
		return nil, err
	}
	return key, nil
}

// SealedSlot is a key slot that is ready to be written.
type SealedSlot struct {
	slot     int
	fields   Slot
	material []byte // encrypted
}

// SealSlot encrypts the volume key for a free slot. It changes nothing yet.
func (h *Header) SealSlot(slot int, key, passphrase []byte, iterations int) (*SealedSlot, error) {
	if err := CheckIterations("iterations", iterations); err != nil {
		return nil, err
	}
	fields := h.Slots[slot]
	if fields.Active == SlotEnabled {
		return nil, ErrSlotUsed
	}
	fields.Active = SlotEnabled
	fields.Iterations = uint32(iterations)
	rand.Read(fields.Salt[:])

	material := h.newMaterial()
	defer material.Close()
	if err := af.Split(material.Bytes()[:h.KeyBytes*Stripes], key, Stripes, h.Hash.String()); err != nil {
		return nil, err
	}
	cipher, err := h.slotCipher(&fields, passphrase)
	if err != nil {
		return nil, err
	}
	cipher.Encrypt(material.Bytes(), material.Bytes(), 0)
	cipher.Wipe()
	return &SealedSlot{slot, fields, bytes.Clone(material.Bytes())}, nil
}

// WriteSlot puts a sealed slot in use: its material into the container w, its
// fields into h. Both are to be synced and saved by the caller, in this order.
func (h *Header) WriteSlot(w io.WriterAt, s *SealedSlot) error {
	if _, err := w.WriteAt(s.material, s.fields.MaterialOffset()); err != nil {
		return fmt.Errorf("luks1: key slot %d: %w", s.slot, err)
	}
	h.Slots[s.slot] = s.fields
	return nil
}

// FillSlots overwrites the places of all slots' material with random bytes.
func (h *Header) FillSlots(w io.WriterAt) error {
	random := make([]byte, materialSectors(int64(h.KeyBytes))*SectorSize)
	for i := range h.Slots {
		rand.Read(random)
		if _, err := w.WriteAt(random, h.Slots[i].MaterialOffset()); err != nil {
			return fmt.Errorf("luks1: key slot %d: %w", i, err)
		}
	}
	return nil
}

// CheckKey returns ErrMismatch if key is not the volume key.
func (h *Header) CheckKey(key []byte) error {
	if len(key) != int(h.KeyBytes) {
		return ErrMismatch
	}
	digest, err := h.digest(key)
	if err != nil {
		return err
	}
	defer digest.Close()
	if subtle.ConstantTimeCompare(digest.Bytes(), h.Digest[:]) != 1 {
		return ErrMismatch
	}
	return nil
}

func (h *Header) digest(key []byte) (*secret.Buffer, error) {
	return kdf.PBKDF2(h.Hash.String(), key, h.DigestSalt[:], int(h.DigestIterations), DigestSize)
}

// newMaterial returns room for a slot's material in whole sectors.
func (h *Header) newMaterial() *secret.Buffer {
	return secret.New(int(materialSectors(int64(h.KeyBytes))) * SectorSize)
}

// slotCipher returns the volume's own cipher under the slot's key. A slot is
// too small for a fast kernel to matter, and a wrong one would cost the key.
func (h *Header) slotCipher(s *Slot, passphrase []byte) (*modes.Sectors, error) {
	slotKey, err := kdf.PBKDF2(h.Hash.String(), passphrase, s.Salt[:], int(s.Iterations), int(h.KeyBytes))
	if err != nil {
		return nil, err
	}
	defer slotKey.Close()
	return modes.New(h.Spec(), slotKey.Bytes(), SectorSize, serpent.Generic)
}
