package volume

import (
	"context"
	"fmt"
	"strings"

	"serpcrypt/volume/luks"
	"serpcrypt/volume/luks1"
)

func (c *luks1Container) isSame(other container) bool {
	o, isLUKS1 := other.(*luks1Container)
	return isLUKS1 && *o.h == *c.h
}

func (c *luks1Container) freeSlot(slot int) (int, error) {
	if slot == AnySlot {
		for i, s := range c.h.Slots {
			if s.Active == luks1.SlotDisabled {
				return i, nil
			}
		}
		return luks.NoSlot, ErrNoFreeSlot
	}
	if err := luks.CheckSlotNumber(slot, luks1.NumSlots); err != nil {
		return luks.NoSlot, err
	}
	if c.h.Slots[slot].Active != luks1.SlotDisabled {
		return luks.NoSlot, fmt.Errorf("%w: %d", ErrSlotUsed, slot)
	}
	return slot, nil
}

// changedSlot: each slot has one place for its material, which must stay until
// the new one is in use.
func (c *luks1Container) changedSlot(int) (int, error) { return c.freeSlot(AnySlot) }

func (c *luks1Container) sealSlot(ctx context.Context, slot int, key, passphrase []byte, p KeyParams) (sealedSlot, error) {
	if err := p.checkLUKS1(c.h.Hash.String()); err != nil {
		return nil, err
	}
	return c.h.SealSlot(ctx, slot, key, passphrase, p.Iterations)
}

// checkLUKS1 finds before anything is done what a key slot of a container with
// that hash cannot be made from.
func (p KeyParams) checkLUKS1(hash string) error {
	switch {
	case p.KDF != PBKDF2:
		return luks.BadParam("key derivation", "%s is not possible with LUKS1, which has only %s", p.KDF, PBKDF2)
	case p.Hash != "" && !strings.EqualFold(p.Hash, hash):
		return luks.BadParam("hash", "%s is not possible: with LUKS1, every key slot has the container's %s", p.Hash, hash)
	}
	return luks.CheckIterations("iterations", p.Iterations)
}

// The methods below work on a copy of the header, as it is not changed where
// writing it has failed.

func (c *luks1Container) addKey(sealed sealedSlot) error {
	h := *c.h
	if err := h.WriteSlot(c.at.Header, sealed.(*luks1.SealedSlot)); err != nil {
		return err
	}
	return c.save(&h)
}

// putSlot puts the fields and the material of any slot, of the same volume key,
// into one that is not in use. Material may lie at any place.
func (c *luks1Container) putSlot(fields luks1.Slot, material []byte, into int) error {
	if err := luks.WriteMaterial(c.at.Header, into, material, c.place(into).from); err != nil {
		return err
	}
	h := *c.h
	fields.MaterialSector = h.Slots[into].MaterialSector
	h.Slots[into] = fields
	return c.save(&h)
}

func (c *luks1Container) changeKey(old int, sealed sealedSlot) error {
	if err := c.addKey(sealed); err != nil {
		return err
	}
	return c.removeKeys(old)
}

// removeKeys changes one field of each slot first. The salts, one of which lies
// in two sectors, are forgotten when they are of no use anymore.
func (c *luks1Container) removeKeys(slots ...int) error {
	h := *c.h
	for _, slot := range slots {
		h.Slots[slot].Active = luks1.SlotDisabled
	}
	if err := c.save(&h); err != nil {
		return err
	}
	var places []byteRange
	for _, slot := range slots {
		places = append(places, c.place(slot))
		h.Slots[slot].Iterations, h.Slots[slot].Salt = 0, [luks1.SaltSize]byte{}
	}
	if err := wipe(c.at.Header, places...); err != nil {
		return err
	}
	return c.save(&h)
}

// place returns where a slot's material is.
func (c *luks1Container) place(slot int) byteRange {
	from := c.h.Slots[slot].MaterialOffset()
	return byteRange{from, from + c.h.MaterialSize()}
}

// erase does not leave out the slots that are not in use: their material may be
// there if a removal was interrupted.
func (c *luks1Container) erase() (commit func() error, err error) {
	if err := c.h.CheckPlaces(c.at.headerSize); err != nil {
		return nil, err
	}
	var all []int
	for slot := range c.h.Slots {
		all = append(all, slot)
	}
	return func() error { return c.removeKeys(all...) }, nil
}

func (c *luks1Container) configure(t Texts) (func() error, error) {
	if t.Label != nil || t.Subsystem != nil {
		return nil, errNoTexts
	}
	h := *c.h
	if t.UUID != nil {
		if err := h.SetUUID(*t.UUID); err != nil {
			return nil, err
		}
	}
	return func() error { return c.save(&h) }, nil
}

// statePayloadSize: the header has no field for it.
func (c *luks1Container) statePayloadSize(int64) (func() error, error) {
	return func() error { return nil }, nil
}

// save writes the header, which the container has from then on.
func (c *luks1Container) save(h *luks1.Header) error {
	if err := h.Save(c.at.Header); err != nil {
		return err
	}
	saved := *h
	c.h = &saved
	return nil
}
