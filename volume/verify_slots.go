package volume

import (
	"serpcrypt/volume/af"
	"serpcrypt/volume/keyslot"
	"serpcrypt/volume/luks"
)

// verifyMaterial finds key slots that no passphrase opens anymore. What was
// encrypted looks random; every sector of it is needed.
func (v *verifier) verifyMaterial(c container) {
	h := c.header()
	var faults []*FormatError
	for slot := range h.Slots {
		if state := h.Slots[slot].State; state != SlotEnabled && state != SlotUnbound {
			continue
		}
		damage := materialFaults(v.at.Header, slot, &h.Slots[slot])
		if len(damage) == 0 {
			v.report.WholeSlots = append(v.report.WholeSlots, slot)
		}
		faults = append(faults, damage...)
	}
	v.report.judge(CheckMaterial, faults...)
}

func materialFaults(header Store, slot int, s *Slot) []*FormatError {
	fault := func(offset int64, format string, args ...any) *FormatError {
		return luks.BadField("key material", slot, s.MaterialOffset+offset, format, args...)
	}
	// Behind the stripes there may be anything.
	material, err := readRange(header, byteRange{s.MaterialOffset, s.MaterialOffset + int64(s.KeyBytes)*keyslot.Stripes})
	if err != nil {
		return []*FormatError{fault(0, "it cannot be read: %v", err)}
	}
	var faults []*FormatError
	for _, spot := range af.NotRandom(material) {
		faults = append(faults, fault(spot.Offset, "%d bytes of it are %s: the key slot is destroyed", spot.Size, spot.What))
	}
	return faults
}
