package luks1

import (
	"fmt"

	"serpcrypt/volume/luks"
)

// MendSlot removes the cause of a slot's fault from h, where that needs no
// guess, and says what it has done, or "" if it can do nothing.
//
// What is always the same is set again: the number of stripes, and the place of
// the material, which is lost nowhere else. A slot whose fault cannot be
// undone is disabled.
func (h *Header) MendSlot(fault *luks.FieldError) string {
	i := fault.Slot
	if i == luks.NoSlot {
		return ""
	}
	slot := &h.Slots[i]
	switch fault.Field {
	case fieldStripes:
		slot.Stripes = Stripes
		return fmt.Sprintf("key slot %d: stripes set to %d", i, Stripes)
	case fieldActive, fieldIterations:
		slot.Active = SlotDisabled
		return fmt.Sprintf("key slot %d: disabled", i)
	case fieldMaterialSector:
		// Of two that overlap, either may be the wrong one.
		for wrong := i; wrong >= 0; wrong-- {
			if standard := h.standardSector(wrong); h.Slots[wrong].MaterialSector != standard && (wrong == i || h.overlap(wrong, i)) {
				h.Slots[wrong].MaterialSector = standard
				return fmt.Sprintf("key slot %d: material sector set to %d", wrong, standard)
			}
		}
	}
	return ""
}

// standardSector returns where every known program puts a slot's material.
func (h *Header) standardSector(slot int) uint32 {
	const align = slotAlignment / SectorSize
	return uint32(align + int64(slot)*roundUp(materialSectors(int64(h.KeyBytes)), align))
}

func (h *Header) overlap(a, b int) bool {
	length := materialSectors(int64(h.KeyBytes))
	first, second := int64(h.Slots[a].MaterialSector), int64(h.Slots[b].MaterialSector)
	return first < second+length && second < first+length
}

// StandardSpace is Space where the places of the slots cannot be trusted.
func (h *Header) StandardSpace() int64 {
	standard := *h
	for i := range standard.Slots {
		standard.Slots[i].MaterialSector = h.standardSector(i)
	}
	return standard.Space()
}
