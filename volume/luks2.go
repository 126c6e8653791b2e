package volume

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"serpcrypt/internal/secret"
	"serpcrypt/volume/luks"
	"serpcrypt/volume/luks2"
)

// luks2Container is the container of a LUKS2 header.
type luks2Container struct {
	at     location
	h      *luks2.Header
	copies [2]luks2.Copy // of the header, as they were found
}

// parseLUKS2 reads both copies of the header.
func parseLUKS2(at location) (*luks2Container, error) {
	found, err := luks2.Read(at.Header, at.headerSize)
	if err != nil {
		return nil, err
	}
	return &luks2Container{at, found.Header, found.Copies}, nil
}

func (c *luks2Container) header() *Header {
	h := c.h
	out := &Header{
		Type:      TypeLUKS2,
		Version:   luks2.Version,
		UUID:      h.UUID,
		Label:     h.Label,
		Subsystem: h.Subsystem,
		Slots:     make([]Slot, luks2.MaxSlots),
		Warnings:  c.copyFaults(),
		LUKS2:     h,
	}
	if s := h.Segments[0]; s != nil {
		out.Cipher, out.Mode, _ = strings.Cut(s.Encryption, "-")
		out.SectorSize, out.PayloadOffset = s.SectorSize, s.Offset
		if s.Size != luks2.DynamicSize {
			out.PayloadSize = s.Size
		}
	}
	if d := c.digest(); d != nil {
		out.Hash, out.Digest, out.DigestSalt, out.DigestIterations = d.Hash, slices.Clone(d.Digest), slices.Clone(d.Salt), d.Iterations
		for _, slot := range d.Keyslots {
			if c.checkSlot(slot) == nil {
				out.KeyBytes = h.Keyslots[slot].KeySize
			}
		}
	}
	for slot := range out.Slots {
		out.Slots[slot] = c.slot(slot)
	}
	return out
}

// digest returns that of the volume key, or nil.
func (c *luks2Container) digest() *luks2.Digest {
	for _, number := range slices.Sorted(maps.Keys(c.h.Digests)) {
		if d := c.h.Digests[number]; slices.Contains(d.Segments, 0) {
			return d
		}
	}
	return nil
}

func (c *luks2Container) slot(number int) Slot {
	k := c.h.Keyslots[number]
	if k == nil {
		return Slot{State: SlotDisabled, Priority: PriorityNormal}
	}
	slot := Slot{
		State:          SlotEnabled,
		Priority:       PriorityNormal,
		KDF:            k.KDF.Type,
		Hash:           k.KDF.Hash,
		Iterations:     k.KDF.Iterations,
		Argon2:         Argon2Cost{k.KDF.Time, k.KDF.Memory, k.KDF.CPUs},
		Salt:           slices.Clone(k.KDF.Salt),
		KeyBytes:       k.KeySize,
		Cipher:         k.Area.Encryption,
		MaterialOffset: k.Area.Offset,
		MaterialSize:   k.Area.Size,
		Stripes:        k.AF.Stripes,
		StripesHash:    k.AF.Hash,
	}
	if k.Priority != nil {
		slot.Priority = SlotPriority(*k.Priority)
	}
	switch {
	case c.checkSlot(number) != nil:
		slot.State = SlotInvalid
	case c.h.IsUnbound(number):
		slot.State = SlotUnbound
	}
	return slot
}

var copyNames = [2]string{"primary", "secondary"}

// copyFaults returns what is wrong with the copies of the header. Only one needs
// to be good.
func (c *luks2Container) copyFaults() []*FormatError {
	var faults []*FormatError
	for i, found := range c.copies {
		name := copyNames[i]
		switch {
		case found.Fault != nil:
			f := found.Fault
			faults = append(faults, luks.BadField(f.Field, luks.NoSlot, f.Offset, "%s copy of the header: %s", name, f.Reason))
		case found.Stale:
			const offSeqID = 16 // LUKS2 1.1.4, table 1
			faults = append(faults, luks.BadField("seqid", luks.NoSlot, found.Offset+offSeqID,
				"%s copy of the header: %d, the other one is newer (%d)", name, found.SeqID, c.h.SeqID))
		}
	}
	return faults
}

func (c *luks2Container) faults() []*FormatError {
	return append(c.copyFaults(), c.h.Faults(c.at.headerSize, c.at.dataSize)...)
}

func (c *luks2Container) validate() error {
	return c.h.Validate(c.at.headerSize, c.at.dataSize)
}

func (c *luks2Container) usableSlots() []int {
	var slots []int
	for _, slot := range c.h.UsableSlots() {
		if c.checkSlot(slot) == nil {
			slots = append(slots, slot)
		}
	}
	return slots
}

func (c *luks2Container) checkSlot(slot int) error {
	if c.h.Keyslots[slot] == nil {
		return fmt.Errorf("%w: %d", ErrNoKeySlot, slot)
	}
	return c.h.SlotFault(slot, c.at.headerSize)
}

func (c *luks2Container) openSlots(ctx context.Context, slots []int, passphrase []byte) (int, *secret.Buffer, error) {
	return c.h.OpenSlots(ctx, c.at.Header, slots, passphrase)
}

func (c *luks2Container) checkKey(ctx context.Context, key []byte) error {
	return c.h.CheckKey(ctx, key)
}

// extents: one, as only one segment is supported.
func (c *luks2Container) extents() ([]extent, error) {
	if c.at.Data == nil {
		return nil, nil
	}
	offset, size, err := c.h.Payload(c.at.dataSize, c.at.detached())
	if err != nil {
		return nil, err
	}
	s := c.h.Segments[0]
	return []extent{{size: size, offset: offset, spec: s.Encryption, sectorSize: s.SectorSize, firstSector: s.IVTweak}}, nil
}

func (c *luks2Container) isSame(other container) bool {
	o, isLUKS2 := other.(*luks2Container)
	return isLUKS2 && reflect.DeepEqual(o.h, c.h)
}
