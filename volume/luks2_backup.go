package volume

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"serpcrypt/volume/luks"
	"serpcrypt/volume/luks2"
)

func (c *luks2Container) parts() (used []byteRange, end int64, err error) {
	_, end = c.h.KeyslotsArea()
	if c.h.Config.KeyslotsSize > luks2.MaxKeyslotsSize {
		return nil, 0, c.validate()
	}
	end = min(end, c.at.headerSize)
	used = []byteRange{{0, min(2*c.h.Size, end)}} // the secondary copy may be cut off
	for slot, k := range c.h.Keyslots {
		if place := c.place(slot); place.from >= 2*c.h.Size && k.Area.Size <= end-place.from {
			used = append(used, place)
		}
	}
	return used, end, nil
}

func (c *luks2Container) restoreTo(at location, now container) (func() error, error) {
	restored := &luks2Container{at, c.h, c.copies}
	if err := checkContainer(restored); err != nil {
		return nil, err
	}
	r := &luks2Restoration{header: at.Header, want: c.h, materials: map[int][]byte{}}
	var err error
	for slot := range c.h.Keyslots {
		if r.materials[slot], err = readRange(c.at.Header, c.place(slot)); err != nil {
			return nil, err
		}
	}
	if old, isLUKS2 := now.(*luks2Container); isLUKS2 && old.validate() == nil && old.isSameVolume(c) {
		r.now = old
		return r.keepKeys, nil
	}
	return func() error { return r.overwrite(at.headerSize) }, nil
}

// isSameVolume reports whether the areas of both headers lie in one keyslots
// area and have the same volume key in them.
func (c *luks2Container) isSameVolume(other *luks2Container) bool {
	return c.h.Size == other.h.Size && c.h.Config.KeyslotsSize == other.h.Config.KeyslotsSize &&
		isSameKey(c.header(), other.header()) && reflect.DeepEqual(c.h.Segments, other.h.Segments)
}

// luks2Restoration puts a header with its key slots in the place of another.
type luks2Restoration struct {
	header    Store
	now       *luks2Container // of the same volume
	want      *luks2.Header
	materials map[int][]byte // by slot
}

// overwrite leaves no header until the new one is there.
func (r *luks2Restoration) overwrite(headerSize int64) error {
	update, err := r.want.Prepare(bytes.NewReader(nil)) // as if no copy were there
	if err != nil {
		return err
	}
	_, end := r.want.KeyslotsArea()
	if err := destroyHeaders(r.header, min(end, headerSize)); err != nil {
		return err
	}
	if err := r.writeMaterials(); err != nil {
		return err
	}
	return update.Save(r.header)
}

// keepKeys writes the material of the backup where none is that is in use, then
// the header, and destroys at last what is in use no more.
func (r *luks2Restoration) keepKeys() error {
	if err := r.findPlaces(); err != nil {
		return err
	}
	update, err := r.want.Prepare(r.header)
	if err != nil {
		return err
	}
	if err := r.writeMaterials(); err != nil {
		return err
	}
	if err := update.Save(r.header); err != nil {
		return err
	}
	var unused []byteRange
	inUse := placesOf(r.want)
	for _, place := range placesOf(r.now.h) {
		if !overlaps(place, inUse) {
			unused = append(unused, place)
		}
	}
	return wipe(r.header, unused...)
}

// findPlaces gives other places to the slots whose material would destroy that of
// a slot in use, as far as there are any. Slots whose material is there already
// keep theirs, and need not be written.
func (r *luks2Restoration) findPlaces() error {
	inUse := placesOf(r.now.h)
	for _, slot := range slices.Sorted(maps.Keys(r.want.Keyslots)) {
		area := &r.want.Keyslots[slot].Area
		place := placeOf(area)
		there, err := readRange(r.header, place)
		if err != nil {
			return err
		}
		if bytes.Equal(there, r.materials[slot]) {
			delete(r.materials, slot)
			continue
		}
		if !overlaps(place, inUse) {
			continue
		}
		both := luks2.Header{Size: r.want.Size, Metadata: luks2.Metadata{Config: r.want.Config, Keyslots: maps.Clone(r.want.Keyslots)}}
		for other, k := range r.now.h.Keyslots {
			both.Keyslots[luks2.MaxSlots+other] = k
		}
		if offset, err := both.FreeArea(area.Size); err == nil {
			area.Offset = offset
		}
	}
	return nil
}

func (r *luks2Restoration) writeMaterials() error {
	for slot, material := range r.materials {
		if err := luks.WriteMaterial(r.header, slot, material, r.want.Keyslots[slot].Area.Offset); err != nil {
			return err
		}
	}
	return nil
}
