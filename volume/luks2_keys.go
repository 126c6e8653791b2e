package volume

import (
	"context"
	"errors"
	"fmt"

	"serpcrypt/internal/hashes"
	"serpcrypt/volume/luks"
	"serpcrypt/volume/luks2"
)

func (c *luks2Container) freeSlot(slot int) (int, error) {
	if slot == AnySlot {
		for slot = 0; c.h.Keyslots[slot] != nil; slot++ {
		}
		if slot == luks2.MaxSlots {
			return luks.NoSlot, ErrNoFreeSlot
		}
	} else if err := luks.CheckSlotNumber(slot, luks2.MaxSlots); err != nil {
		return luks.NoSlot, err
	} else if c.h.Keyslots[slot] != nil {
		return luks.NoSlot, fmt.Errorf("%w: %d", ErrSlotUsed, slot)
	}
	return slot, c.checkSpace()
}

// checkSpace returns ErrNoFreeSlot if there is no place for material.
func (c *luks2Container) checkSpace() error {
	if _, err := c.h.FreeArea(luks2.AreaSize(c.header().KeyBytes)); err != nil {
		return fmt.Errorf("%w: %w", ErrNoFreeSlot, err)
	}
	return nil
}

// changedSlot is the same, with its material in another place.
func (c *luks2Container) changedSlot(slot int) (int, error) { return slot, c.checkSpace() }

func (c *luks2Container) sealSlot(ctx context.Context, slot int, key, passphrase []byte, p KeyParams) (sealedSlot, error) {
	if p.Hash == "" {
		p.Hash = c.digest().Hash
	}
	if err := p.checkLUKS2(); err != nil {
		return nil, err
	}
	params := p.luks2()
	params.Replace = c.h.Keyslots[slot] != nil
	sealed, err := c.h.SealSlot(ctx, slot, key, passphrase, params)
	if errors.Is(err, luks2.ErrNoSpace) {
		return nil, fmt.Errorf("%w: %w", ErrNoFreeSlot, err)
	}
	return sealed, err
}

// checkLUKS2 finds before anything is done what a key slot cannot be made from.
func (p KeyParams) checkLUKS2() error {
	if _, err := hashes.New(p.Hash); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	derivation := p.luks2().KDF
	return derivation.CheckNew()
}

func (p KeyParams) luks2() luks2.SlotParams {
	k := luks2.KDF{Type: p.KDF}
	if p.KDF == PBKDF2 {
		k.Hash, k.Iterations = p.Hash, p.Iterations
	} else {
		k.Time, k.Memory, k.CPUs = p.Argon2.Time, p.Argon2.MemoryKiB, p.Argon2.Lanes
	}
	return luks2.SlotParams{KDF: k}
}

// change saves the header after an edit. The edit is of a header that is read
// again, as this one stays what it is where writing has failed.
func (c *luks2Container) change(edit func(h *luks2.Header) error) error {
	return c.changeAfter(func() error { return nil }, edit)
}

// changeAfter is change that writes something else first, once it is known that
// the edited header can be written.
func (c *luks2Container) changeAfter(write func() error, edit func(h *luks2.Header) error) error {
	found, err := luks2.Read(c.at.Header, c.at.headerSize)
	if err != nil {
		return err
	}
	if err := edit(found.Header); err != nil {
		return err
	}
	update, err := found.Header.Prepare(c.at.Header)
	if err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	return update.Save(c.at.Header)
}

func (c *luks2Container) addKey(sealed sealedSlot) error {
	slot := sealed.(*luks2.SealedSlot)
	write := func() error { return slot.WriteMaterial(c.at.Header) }
	return c.changeAfter(write, func(h *luks2.Header) error { return h.UseSlot(slot) })
}

// changeKey has the header go from the old material to the new one in one step.
func (c *luks2Container) changeKey(old int, sealed sealedSlot) error {
	place := c.place(old)
	if err := c.addKey(sealed); err != nil {
		return err
	}
	return wipe(c.at.Header, place)
}

// place returns the area of a slot.
func (c *luks2Container) place(slot int) byteRange {
	return placeOf(&c.h.Keyslots[slot].Area)
}

func (c *luks2Container) keyslotsArea() byteRange {
	from, to := c.h.KeyslotsArea()
	return byteRange{from, to}
}

func placeOf(a *luks2.Area) byteRange { return byteRange{a.Offset, a.Offset + a.Size} }

// placesOf returns the areas of all key slots.
func placesOf(h *luks2.Header) map[int]byteRange {
	places := map[int]byteRange{}
	for slot, k := range h.Keyslots {
		places[slot] = placeOf(&k.Area)
	}
	return places
}

func (c *luks2Container) removeKeys(slots ...int) error {
	var places []byteRange
	err := c.change(func(h *luks2.Header) error {
		for _, slot := range slots {
			offset, size, err := h.RemoveSlot(slot)
			if err != nil {
				return err
			}
			places = append(places, byteRange{offset, offset + size})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return wipe(c.at.Header, places...)
}

// erase overwrites all places where material can be: some may be left if a
// removal was interrupted.
func (c *luks2Container) erase() (commit func() error, err error) {
	if err := checkContainer(c); err != nil {
		return nil, err
	}
	var all []int
	for slot := range c.h.Keyslots {
		all = append(all, slot)
	}
	return func() error {
		if err := c.removeKeys(all...); err != nil {
			return err
		}
		return wipe(c.at.Header, c.keyslotsArea())
	}, nil
}

func (c *luks2Container) configure(t Texts) (func() error, error) {
	set := func(h *luks2.Header) error {
		if t.UUID != nil {
			id, err := luks.NewUUID(*t.UUID)
			if err != nil {
				return err
			}
			h.UUID = id
		}
		for _, text := range []struct {
			name   string
			wanted *string
			field  *string
		}{{"label", t.Label, &h.Label}, {"subsystem", t.Subsystem, &h.Subsystem}} {
			if text.wanted == nil {
				continue
			}
			if err := luks2.CheckText(text.name, *text.wanted); err != nil {
				return err
			}
			*text.field = *text.wanted
		}
		return nil
	}
	try := *c.h
	if err := set(&try); err != nil {
		return nil, err
	}
	return func() error { return c.change(set) }, nil
}

func (c *luks2Container) statePayloadSize(size int64) (func() error, error) {
	return func() error {
		return c.change(func(h *luks2.Header) error {
			if s := h.Segments[0]; s.Size != luks2.DynamicSize {
				s.Size = size
			}
			return nil
		})
	}, nil
}
