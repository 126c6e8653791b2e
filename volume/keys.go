package volume

import (
	"context"
	"errors"
	"fmt"

	"serpcrypt/volume/luks"
)

// The functions that derive the key of a key slot from a passphrase.
const (
	PBKDF2   = "pbkdf2"
	Argon2i  = "argon2i"
	Argon2id = "argon2id"
)

// KeyParams are how a key slot is made.
type KeyParams struct {
	KDF        string // PBKDF2 if empty; LUKS1 knows no other
	Hash       string // of PBKDF2; that of the volume key's digest if empty, and with LUKS1 always
	Iterations int    // of PBKDF2
	Argon2     Argon2Cost
}

// AddKey puts the volume key into a free key slot, or into the first one if slot
// is AnySlot, under another passphrase. It returns the slot.
//
// Whatever happens, the container opens with what opened it before. Errors:
// ErrSlotUsed, ErrNoFreeSlot, ErrVolumeKey, ErrBusy if somebody else changes the
// header, a *ParamError, a *FormatError, that of ctx, or those of the store.
func AddKey(ctx context.Context, header Store, key *Key, passphrase []byte, slot int, p KeyParams) (int, error) {
	err := edit(ctx, header, func(c container) (func() error, error) {
		var err error
		if slot, err = c.freeSlot(slot); err != nil {
			return nil, err
		}
		sealed, err := seal(ctx, c, slot, key, passphrase, p)
		if err != nil {
			return nil, err
		}
		return func() error { return c.addKey(sealed) }, nil
	})
	if err != nil {
		return luks.NoSlot, err
	}
	return slot, nil
}

// ChangeKey replaces the key slot that key came out of, so that it opens with
// another passphrase. It returns the slot that the key is in now: the same if the
// format can write elsewhere before, or else one that was free.
//
// Whatever happens, the old or the new passphrase opens the container, if not
// both. Errors: ErrNoKeySlot if key came out of none, ErrNoFreeSlot if there is
// no room for the new one beside the old, and those of AddKey.
func ChangeKey(ctx context.Context, header Store, key *Key, passphrase []byte, p KeyParams) (int, error) {
	slot := luks.NoSlot
	err := edit(ctx, header, func(c container) (func() error, error) {
		if err := needSlot(c, key.Slot); err != nil {
			return nil, err
		}
		var err error
		if slot, err = c.changedSlot(key.Slot); err != nil {
			return nil, err
		}
		sealed, err := seal(ctx, c, slot, key, passphrase, p)
		if err != nil {
			return nil, err
		}
		return func() error { return c.changeKey(key.Slot, sealed) }, nil
	})
	if err != nil {
		return luks.NoSlot, err
	}
	return slot, nil
}

// seal makes a key slot for a key that is the container's.
func seal(ctx context.Context, c container, slot int, key *Key, passphrase []byte, p KeyParams) (sealedSlot, error) {
	if err := checkVolumeKey(ctx, c, key.Bytes.Bytes()); err != nil {
		return nil, err
	}
	if p.KDF == "" {
		p.KDF = PBKDF2
	}
	return c.sealSlot(ctx, slot, key.Bytes.Bytes(), passphrase, p)
}

// RemoveKey destroys a key slot. If no other one is in use, nobody will ever
// open the container again: then the error is ErrLastKey, unless last is set.
//
// First the header forgets the slot, then its material is overwritten. Other
// errors: ErrNoKeySlot, ErrBusy, a *FormatError, that of ctx, or those of the
// store.
func RemoveKey(ctx context.Context, header Store, slot int, last bool) error {
	return edit(ctx, header, func(c container) (func() error, error) {
		if err := needSlot(c, slot); err != nil {
			return nil, err
		}
		if !last && isLast(c, slot) {
			return nil, fmt.Errorf("%w: %d", ErrLastKey, slot)
		}
		return func() error { return c.removeKeys(slot) }, nil
	})
}

// Erase destroys every key slot, and what may be left of earlier ones, so that
// nobody will ever open the container again. With LUKS1 that works also if
// nobody can open it now, as long as it is sure where the key material lies.
// The errors are those of RemoveKey.
func Erase(ctx context.Context, header Store) error {
	c, err := readContainer(ctx, Stores{Header: header})
	if err != nil {
		return err
	}
	return editContainer(ctx, header, c, container.erase)
}

// needSlot returns ErrNoKeySlot if the slot is not in use. With LUKS2 one with
// some fault is: it can be removed.
func needSlot(c container, slot int) error {
	slots := c.header().Slots
	isThere := slot >= 0 && slot < len(slots)
	if !isThere || slots[slot].State == SlotDisabled || errors.Is(c.checkSlot(slot), ErrNoKeySlot) {
		return fmt.Errorf("%w: %s", ErrNoKeySlot, slotName(slot))
	}
	return nil
}

// isLast reports whether no other slot can be opened.
func isLast(c container, slot int) bool {
	for other, s := range c.header().Slots {
		if other != slot && s.State == SlotEnabled {
			return false
		}
	}
	return true
}

func slotName(slot int) string {
	if slot == AnySlot {
		return "the volume key came out of none"
	}
	return fmt.Sprint(slot)
}
