package luks2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/keyslot"
	"serpcrypt/volume/luks"
)

// SlotParams are what a new key slot is made from.
type SlotParams struct {
	KDF KDF // its salt does not count: a new one is made

	// Replace lets the slot take the place of one in use, which stays where it is
	// until the header is written.
	Replace bool
}

// SealedSlot is a key slot that is ready to be written.
type SealedSlot struct {
	slot     int
	fields   *Keyslot
	material []byte // encrypted
}

// SealSlot encrypts the volume key for a key slot, and for an area that is free
// as long as the header does not change. It changes nothing yet.
//
// When ctx is done it returns the error of that, as kdf.Derive does. Others are
// luks.ErrSlotUsed, ErrNoSpace, ErrNoDigest, a *luks.ParamError, a *modes.SpecError, an
// *hashes.UnknownError, a *kdf.Argon2Error or a *kdf.MemoryError.
func (h *Header) SealSlot(ctx context.Context, slot int, key, passphrase []byte, p SlotParams) (*SealedSlot, error) {
	if err := luks.CheckSlotNumber(slot, MaxSlots); err != nil {
		return nil, err
	}
	old := h.Keyslots[slot]
	if old != nil && !p.Replace {
		return nil, luks.ErrSlotUsed
	}
	fields, err := h.newKeyslot(len(key), p.KDF)
	if err != nil {
		return nil, err
	}
	if old != nil {
		fields.Priority = old.Priority
	}
	slotKey, err := fields.derive(ctx, passphrase)
	if err != nil {
		return nil, err
	}
	defer slotKey.Close()
	material, err := fields.material().Seal(key, slotKey.Bytes())
	if err != nil {
		return nil, fmt.Errorf("luks2: %w", err)
	}
	return &SealedSlot{slot, fields, material}, nil
}

// WriteSlot puts a sealed slot in use: its material onto the disk, its fields into
// h, which is to be saved. Errors: ErrNoDigest, a *luks.FieldError, or that of the
// store.
func (h *Header) WriteSlot(store luks.Store, s *SealedSlot) error {
	if h.volumeDigest() == nil {
		return ErrNoDigest
	}
	if err := s.WriteMaterial(store); err != nil {
		return err
	}
	return h.UseSlot(s)
}

// WriteMaterial is the part of WriteSlot that writes.
func (s *SealedSlot) WriteMaterial(store luks.Store) error {
	return luks.WriteMaterial(store, s.slot, s.material, s.fields.Area.Offset)
}

// UseSlot is the part of WriteSlot that changes h. The error is ErrNoDigest.
func (h *Header) UseSlot(s *SealedSlot) error {
	d := h.volumeDigest()
	if d == nil {
		return ErrNoDigest
	}
	if h.Keyslots == nil {
		h.Keyslots = map[int]*Keyslot{}
	}
	h.Keyslots[s.slot] = s.fields
	for _, other := range h.Digests {
		other.Keyslots = without(other.Keyslots, s.slot)
	}
	d.Keyslots = append(d.Keyslots, s.slot)
	slices.Sort(d.Keyslots)
	return nil
}

// RemoveSlot takes a key slot out of the header, and out of the digests and
// tokens that name it; a digest goes too if it is left without any use. The
// material stays where it is: its place is returned, in bytes, to be overwritten
// when the header has been saved. The error is luks.ErrSlotUnused.
func (h *Header) RemoveSlot(slot int) (offset, size int64, err error) {
	k := h.Keyslots[slot]
	if k == nil {
		return 0, 0, luks.ErrSlotUnused
	}
	delete(h.Keyslots, slot)
	for number, d := range h.Digests {
		left := without(d.Keyslots, slot)
		if len(left) < len(d.Keyslots) && len(left) == 0 && len(d.Segments) == 0 {
			delete(h.Digests, number)
		}
		d.Keyslots = left
	}
	for _, t := range h.Tokens {
		t.Keyslots = without(t.Keyslots, slot)
	}
	return k.Area.Offset, k.Area.Size, nil
}

// without returns a copy of a list that lacks a number.
func without(numbers []int, number int) []int {
	return slices.DeleteFunc(slices.Clone(numbers), func(n int) bool { return n == number })
}

// argon2AFHash is the hash of the anti-forensic splitter where the derivation has
// none, as cryptsetup's.
const argon2AFHash = "sha256"

// newKeyslot returns the fields of a new slot in a free area. Its encryption is
// that of the data, under a key as long as the volume's.
func (h *Header) newKeyslot(keyLen int, derivation KDF) (*Keyslot, error) {
	if err := derivation.CheckNew(); err != nil {
		return nil, err
	}
	d, segment := h.volumeDigest(), h.Segments[dataSegment]
	if d == nil {
		return nil, ErrNoDigest
	}
	if segment == nil || !h.isVolumeKeySize(d, keyLen) {
		return nil, luks.BadParam("volume key", "%d bytes are not its size", keyLen)
	}
	size := AreaSize(keyLen)
	offset, err := h.FreeArea(size)
	if err != nil {
		return nil, err
	}
	derivation.Hash, derivation.Salt = strings.ToLower(derivation.Hash), newSalt()
	afHash := argon2AFHash
	if derivation.Type == KDFPBKDF2 {
		afHash = derivation.Hash
	}
	return &Keyslot{
		Type:    KeyslotLUKS2,
		KeySize: keyLen,
		AF:      AF{Type: AFLUKS1, Stripes: keyslot.Stripes, Hash: afHash},
		Area:    Area{Type: AreaRaw, Offset: offset, Size: size, Encryption: segment.Encryption, KeySize: keyLen},
		KDF:     derivation,
	}, nil
}

// material is where and how the slot keeps the volume key.
func (k *Keyslot) material() *keyslot.Material {
	return &keyslot.Material{Offset: k.Area.Offset, KeyLen: k.KeySize, Hash: k.AF.Hash, Cipher: k.Area.Encryption}
}

// derive returns the key of the slot's area.
func (k *Keyslot) derive(ctx context.Context, passphrase []byte) (*secret.Buffer, error) {
	if k.KDF.Type == KDFPBKDF2 {
		return kdf.PBKDF2(ctx, k.KDF.Hash, k.job(passphrase))
	}
	return k.KDF.argon2().Key(ctx, passphrase, k.KDF.Salt, k.Area.KeySize)
}

// job is the derivation of the area's key by PBKDF2.
func (k *Keyslot) job(passphrase []byte) kdf.Job {
	return kdf.Job{Password: passphrase, Salt: k.KDF.Salt, Iterations: k.KDF.Iterations, KeyLen: k.Area.KeySize}
}

func (k *KDF) argon2() kdf.Argon2 {
	return kdf.Argon2{Variant: k.Type, Time: k.Time, Memory: k.Memory, CPUs: k.CPUs}
}

// CheckNew keeps what is written to what cryptsetup does. Errors are a
// *luks.ParamError, an *hashes.UnknownError or a *kdf.Argon2Error.
func (k *KDF) CheckNew() error {
	switch k.Type {
	case KDFPBKDF2:
		return checkNewPBKDF2("", k.Hash, k.Iterations)
	case KDFArgon2i, KDFArgon2id:
		if err := k.argon2().CheckNew(); err != nil {
			return fmt.Errorf("luks2: %w", err)
		}
		return nil
	}
	return luks.BadParam("key derivation", "unknown function %q (known: %s, %s, %s)", k.Type, KDFPBKDF2, KDFArgon2i, KDFArgon2id)
}
