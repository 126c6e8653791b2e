package volume

import (
	"bytes"

	"serpcrypt/volume/luks"
	"serpcrypt/volume/luks1"
)

// parts of a header with a fault in its slots are all that can be material.
func (c *luks1Container) parts() (used []byteRange, end int64, err error) {
	for _, fault := range c.faults() {
		if fault.Slot == luks.NoSlot {
			return nil, 0, fault
		}
	}
	if c.validate() != nil {
		end = min(c.h.StandardSpace(), c.at.headerSize)
		return []byteRange{{0, end}}, end, nil
	}
	used = []byteRange{{0, luks1.HeaderSize}}
	for slot, s := range c.h.Slots {
		if s.Active != luks1.SlotDisabled {
			used = append(used, c.place(slot))
		}
	}
	return used, min(c.h.Space(), c.at.headerSize), nil
}

func (c *luks1Container) restoreTo(at location, now container) (func() error, error) {
	restored := &luks1Container{at, c.h}
	if err := checkContainer(restored); err != nil {
		return nil, err
	}
	r := &luks1Restoration{header: at.Header, want: *c.h, materials: map[int][]byte{}}
	var err error
	for slot, s := range c.h.Slots {
		if s.Active != luks1.SlotDisabled {
			if r.materials[slot], err = readRange(c.at.Header, c.place(slot)); err != nil {
				return nil, err
			}
		}
	}
	if old, isLUKS1 := now.(*luks1Container); isLUKS1 && old.validate() == nil && isSameVolume(old.h, c.h) {
		r.now = luks1Container{at, old.h}
		return r.keepKeys, nil
	}
	return func() error { return r.overwrite(at.headerSize) }, nil
}

// isSameVolume reports whether slots of one header can be put into the other.
func isSameVolume(a, b *luks1.Header) bool {
	x, y := *a, *b
	x.UUID, y.UUID = luks1.UUID{}, luks1.UUID{}
	for i := range x.Slots {
		x.Slots[i] = luks1.Slot{MaterialSector: x.Slots[i].MaterialSector}
		y.Slots[i] = luks1.Slot{MaterialSector: y.Slots[i].MaterialSector}
	}
	return x == y
}

// luks1Restoration puts a header with its slots in the place of another.
type luks1Restoration struct {
	header    Store
	now       luks1Container // of the same volume
	want      luks1.Header
	materials map[int][]byte // of the slots of want that are in use
}

// overwrite leaves no header until the new one is there.
func (r *luks1Restoration) overwrite(headerSize int64) error {
	end := headerSize
	if payload := r.want.PayloadOffset(); payload != 0 {
		end = min(end, payload)
	}
	if err := destroyHeaders(r.header, end); err != nil {
		return err
	}
	for slot, material := range r.materials {
		if err := luks.WriteMaterial(r.header, slot, material, r.want.Slots[slot].MaterialOffset()); err != nil {
			return err
		}
	}
	return r.want.Save(r.header)
}

// keepKeys goes slot by slot. The header that is written last has the other
// fields of the backup.
func (r *luks1Restoration) keepKeys() error {
	var changed, surplus []int
	for slot := range r.want.Slots {
		isIn, wanted := r.now.h.Slots[slot].Active == luks1.SlotEnabled, r.materials[slot] != nil
		switch {
		case wanted && !isIn:
			if err := r.put(slot, slot); err != nil {
				return err
			}
		case wanted:
			same, err := r.isThere(slot)
			if err != nil {
				return err
			}
			if !same {
				changed = append(changed, slot)
			}
		case r.now.h.Slots[slot].Active != luks1.SlotDisabled:
			surplus = append(surplus, slot)
		}
	}
	for _, slot := range changed {
		if err := r.replace(slot); err != nil {
			return err
		}
	}
	if len(surplus) > 0 {
		if err := r.now.removeKeys(surplus...); err != nil {
			return err
		}
	}
	return r.now.save(&r.want)
}

// isThere reports whether a slot is as in the backup.
func (r *luks1Restoration) isThere(slot int) (bool, error) {
	if r.now.h.Slots[slot] != r.want.Slots[slot] {
		return false, nil
	}
	material, err := readRange(r.header, r.now.place(slot))
	return bytes.Equal(material, r.materials[slot]), err
}

// put writes a slot of the backup into any slot that is not in use.
func (r *luks1Restoration) put(slot, into int) error {
	return r.now.putSlot(r.want.Slots[slot], r.materials[slot], into)
}

// replace puts a slot of the backup over one that is in use. Meanwhile it is in
// a free slot too, if there is one: material may lie at any place.
func (r *luks1Restoration) replace(slot int) error {
	spare, err := r.now.freeSlot(AnySlot)
	hasSpare := err == nil
	if hasSpare {
		if err := r.put(slot, spare); err != nil {
			return err
		}
	}
	if err := r.now.removeKeys(slot); err != nil {
		return err
	}
	if err := r.put(slot, slot); err != nil {
		return err
	}
	if hasSpare {
		return r.now.removeKeys(spare)
	}
	return nil
}
