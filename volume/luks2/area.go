package luks2

import (
	"cmp"
	"errors"
	"slices"

	"serpcrypt/volume/keyslot"
)

// ErrNoSpace says that the keyslots area is full.
var ErrNoSpace = errors.New("luks2: the keyslots area has no room for another key slot")

// AreaSize returns how many bytes the area of a key slot takes, for a volume key
// of so many.
func AreaSize(keyBytes int) int64 {
	return roundUp(keyslot.MaterialSize(int64(keyBytes)), AreaAlignment)
}

// FreeArea returns the first place in the keyslots area that is free for an
// area of size bytes, in bytes from the start of the header's store, or
// ErrNoSpace. The header needs to have passed Validate.
func (h *Header) FreeArea(size int64) (offset int64, err error) {
	offset, end := h.KeyslotsArea()
	for _, taken := range h.areas() {
		if taken.Offset-offset >= size {
			break
		}
		offset = max(offset, roundUp(taken.Offset+taken.Size, AreaAlignment))
	}
	if end-offset < size {
		return 0, ErrNoSpace
	}
	return offset, nil
}

// FreeAreas returns how many areas of size bytes, a multiple of AreaAlignment and
// more than 0, are free. The header needs to have passed Validate.
func (h *Header) FreeAreas(size int64) int {
	offset, end := h.KeyslotsArea()
	n := int64(0)
	for _, taken := range append(h.areas(), Area{Offset: end}) {
		n += max(taken.Offset-offset, 0) / size
		offset = max(offset, roundUp(taken.Offset+taken.Size, AreaAlignment))
	}
	return int(n)
}

// areas returns the areas of all key slots, of whatever type, by their offset.
func (h *Header) areas() []Area {
	var areas []Area
	for _, k := range h.Keyslots {
		areas = append(areas, k.Area)
	}
	slices.SortFunc(areas, func(a, b Area) int { return cmp.Compare(a.Offset, b.Offset) })
	return areas
}
