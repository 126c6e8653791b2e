package volume

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"serpcrypt/internal/secret"
	"serpcrypt/volume/luks1"
)

// luks1Container is the container of a LUKS1 header.
type luks1Container struct {
	at location
	h  *luks1.Header
}

func parseLUKS1(at location, head []byte) (*luks1Container, error) {
	h, err := luks1.Parse(head)
	if err != nil {
		return nil, err
	}
	return &luks1Container{at, h}, nil
}

func (c *luks1Container) header() *Header {
	h := c.h
	out := &Header{
		Type:             TypeLUKS1,
		Version:          int(h.Version),
		UUID:             h.UUID.String(),
		Cipher:           h.CipherName.String(),
		Mode:             h.CipherMode.String(),
		Hash:             h.Hash.String(),
		KeyBytes:         int(h.KeyBytes),
		SectorSize:       luks1.SectorSize,
		PayloadOffset:    h.PayloadOffset(),
		Digest:           slices.Clone(h.Digest[:]),
		DigestSalt:       slices.Clone(h.DigestSalt[:]),
		DigestIterations: int(h.DigestIterations),
		LUKS1:            h,
	}
	for _, s := range h.Slots {
		state := SlotInvalid
		switch s.Active {
		case luks1.SlotEnabled:
			state = SlotEnabled
		case luks1.SlotDisabled:
			state = SlotDisabled
		}
		out.Slots = append(out.Slots, Slot{
			State:          state,
			Priority:       PriorityNormal,
			KDF:            PBKDF2,
			Hash:           out.Hash,
			Iterations:     int(s.Iterations),
			Salt:           slices.Clone(s.Salt[:]),
			KeyBytes:       out.KeyBytes,
			Cipher:         h.Spec(),
			MaterialOffset: s.MaterialOffset(),
			MaterialSize:   h.MaterialSize(),
			Stripes:        int(s.Stripes),
			StripesHash:    out.Hash,
		})
	}
	return out
}

func (c *luks1Container) faults() []*FormatError {
	return c.h.Faults(c.at.headerSize, c.at.dataSize)
}

func (c *luks1Container) validate() error {
	return c.h.Validate(c.at.headerSize, c.at.dataSize)
}

func (c *luks1Container) usableSlots() []int {
	var slots []int
	for i, s := range c.h.Slots {
		if s.Active == luks1.SlotEnabled {
			slots = append(slots, i)
		}
	}
	slices.SortStableFunc(slots, func(a, b int) int {
		return cmp.Compare(c.h.Slots[a].Iterations, c.h.Slots[b].Iterations)
	})
	return slots
}

func (c *luks1Container) checkSlot(slot int) error {
	if slot < 0 || slot >= luks1.NumSlots || c.h.Slots[slot].Active != luks1.SlotEnabled {
		return fmt.Errorf("%w: %d", ErrNoKeySlot, slot)
	}
	return nil
}

func (c *luks1Container) openSlots(ctx context.Context, slots []int, passphrase []byte) (int, *secret.Buffer, error) {
	return c.h.OpenSlots(ctx, c.at.Header, slots, passphrase)
}

func (c *luks1Container) checkKey(ctx context.Context, key []byte) error {
	return c.h.CheckKey(ctx, key)
}

// extents: one, from the payload's start to the end of its store. Its sectors
// are numbered from 0.
func (c *luks1Container) extents() ([]extent, error) {
	if c.at.Data == nil {
		return nil, nil
	}
	offset, size, err := c.h.Payload(c.at.dataSize, c.at.detached())
	if err != nil {
		return nil, err
	}
	return []extent{{size: size, offset: offset, spec: c.h.Spec(), sectorSize: luks1.SectorSize}}, nil
}
