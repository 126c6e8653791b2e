package volume

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"serpcrypt/volume/keyslot"
	"serpcrypt/volume/luks"
	"serpcrypt/volume/luks1"
	"serpcrypt/volume/luks2"
)

// convert moves the material of each slot, while the header is still LUKS2, to
// the place that it has in LUKS1. That of slot 0 lies in the header of LUKS2, so
// its key goes to another slot first.
func (c *luks2Container) convert() (commit func() error, err error) {
	if reason := c.notLUKS1(); reason != "" {
		return nil, &ConvertError{TypeLUKS1, reason}
	}
	h, err := c.asLUKS1()
	if err != nil {
		return nil, err
	}
	slots, spare := c.slotsInLUKS1()
	if spare == luks1.NumSlots {
		return nil, &ConvertError{TypeLUKS1, "all eight key slots are in use: remove a key first"}
	}
	moves, reason := c.movesToLUKS1(h, slots)
	if reason != "" {
		return nil, &ConvertError{TypeLUKS1, reason}
	}
	return func() error {
		for _, m := range moves {
			if err := c.moveSlot(m.slot, m.to); err != nil {
				return err
			}
		}
		c.fillSlots(h, slots)
		one := &luks1Container{c.at, h}
		if err := c.becomeLUKS1(h); err != nil {
			return err
		}
		if spare == luks.NoSlot {
			return nil
		}
		return one.moveSlot(spare, 0)
	}, nil
}

// slotsInLUKS1 returns in which slot of LUKS1 each key slot is going to be at
// first, and the one that slot 0 takes until its place is free, or luks.NoSlot.
func (c *luks2Container) slotsInLUKS1() (slots map[int]int, spare int) {
	slots = map[int]int{}
	for slot := range c.h.Keyslots {
		slots[slot] = slot
	}
	if c.h.Keyslots[0] == nil {
		return slots, luks.NoSlot
	}
	for spare = 1; c.h.Keyslots[spare] != nil; spare++ {
	}
	slots[0] = spare
	return slots, spare
}

// movesToLUKS1 returns what brings the material of the slots to the places that h
// has for it, or the reason why nothing does.
func (c *luks2Container) movesToLUKS1(h *luks1.Header, slots map[int]int) (moves []move, reason string) {
	area := c.keyslotsArea()
	targets := map[int]byteRange{}
	for slot, in := range slots {
		from := h.Slots[in].MaterialOffset()
		to := from + c.h.Keyslots[slot].Area.Size
		targets[slot] = byteRange{from, to}
		switch {
		case from < area.from:
			return nil, fmt.Sprintf("the header, of two times %d bytes, takes the place of key slot %d", c.h.Size, in)
		case to > area.to: // LUKS2 cannot have it there on the way
			return nil, fmt.Sprintf("the place of key slot %d lies behind the area for key slots, which ends at byte %d", in, area.to)
		}
	}
	moves, possible := planMoves(placesOf(c.h), targets, area)
	if !possible {
		return nil, "there is no room to move the key slots to their places: remove a key first"
	}
	return moves, ""
}

// notLUKS1 says what LUKS1 has no way to say, or "".
func (c *luks2Container) notLUKS1() string {
	s, d := c.h.Segments[0], c.digest()
	name, mode, _ := strings.Cut(s.Encryption, "-")
	const nameSize = len(luks1.Name{})
	switch {
	case c.copyFaults() != nil:
		return "one copy of the header is damaged: repair it first"
	case s.SectorSize != luks1.SectorSize:
		return fmt.Sprintf("its sectors have %d bytes, those of LUKS1 %d", s.SectorSize, luks1.SectorSize)
	case s.Size != luks2.DynamicSize:
		return "its payload has a fixed size"
	case s.IVTweak != 0:
		return "its sectors are not numbered from 0"
	case s.Offset%luks1.SectorSize != 0 || s.Offset/luks1.SectorSize > math.MaxUint32:
		return fmt.Sprintf("its payload begins at byte %d", s.Offset)
	case len(name) >= nameSize || len(mode) >= nameSize || len(d.Hash) >= nameSize:
		return "the name of its cipher or hash is too long"
	case len(d.Salt) != luks1.SaltSize:
		return fmt.Sprintf("the salt of its digest has %d bytes, not %d", len(d.Salt), luks1.SaltSize)
	case len(c.h.Digests) > 1:
		return "it has several digests"
	case len(c.h.Tokens) > 0:
		return "it has tokens, which would be lost"
	case len(c.h.Config.Flags) > 0:
		return fmt.Sprintf("it has the flags %q, which would be lost", c.h.Config.Flags)
	case c.h.Label != "" || c.h.Subsystem != "":
		return "its label or subsystem would be lost: remove it first"
	case len(c.h.Keyslots) == 0:
		return "it has no key slot, and does not tell how long its key is"
	}
	for _, slot := range slices.Sorted(maps.Keys(c.h.Keyslots)) {
		if reason := c.slotNotLUKS1(slot); reason != "" {
			return fmt.Sprintf("key slot %d: %s", slot, reason)
		}
	}
	return ""
}

func (c *luks2Container) slotNotLUKS1(slot int) string {
	k, hash := c.h.Keyslots[slot], c.digest().Hash
	switch {
	case c.checkSlot(slot) != nil:
		return "it is damaged or of an unknown type"
	case slot >= luks1.NumSlots:
		return fmt.Sprintf("LUKS1 has only the slots 0 to %d", luks1.NumSlots-1)
	case k.KDF.Type != luks2.KDFPBKDF2:
		return fmt.Sprintf("it has %s, LUKS1 has only %s", k.KDF.Type, luks2.KDFPBKDF2)
	case !strings.EqualFold(k.KDF.Hash, hash) || !strings.EqualFold(k.AF.Hash, hash):
		return fmt.Sprintf("it has another hash than the digest's %s", hash)
	case len(k.KDF.Salt) != luks1.SaltSize:
		return fmt.Sprintf("its salt has %d bytes, not %d", len(k.KDF.Salt), luks1.SaltSize)
	case k.Area.Encryption != c.h.Segments[0].Encryption || k.Area.KeySize != k.KeySize:
		return fmt.Sprintf("its cipher is %s with %d bits, not that of the payload", k.Area.Encryption, 8*k.Area.KeySize)
	case k.Priority != nil && *k.Priority != luks2.PriorityNormal:
		return "its priority would be lost"
	}
	return ""
}

// asLUKS1 returns the header that says the same, with no slot in use.
func (c *luks2Container) asLUKS1() (*luks1.Header, error) {
	s, d := c.h.Segments[0], c.digest()
	h, err := luks1.New(luks1.Params{Spec: s.Encryption, KeyBytes: c.header().KeyBytes, Hash: d.Hash, UUID: c.h.UUID, Detached: true})
	if err != nil {
		return nil, err
	}
	h.PayloadSector = uint32(s.Offset / luks1.SectorSize)
	h.DigestIterations = uint32(d.Iterations)
	copy(h.DigestSalt[:], d.Salt)
	copy(h.Digest[:], d.Digest) // of more bytes the first ones are the same
	if err := h.Validate(c.at.headerSize, c.at.dataSize); err != nil {
		return nil, &ConvertError{TypeLUKS1, err.Error()}
	}
	return h, nil
}

func (c *luks2Container) fillSlots(h *luks1.Header, slots map[int]int) {
	for slot, in := range slots {
		s, k := &h.Slots[in], c.h.Keyslots[slot]
		s.Active, s.Iterations, s.Stripes = luks1.SlotEnabled, uint32(k.KDF.Iterations), keyslot.Stripes
		copy(s.Salt[:], k.KDF.Salt)
	}
}

// becomeLUKS1 writes the second sector, which spoils the primary copy; then the
// first one, which switches. The secondary copy is good until it is destroyed. The
// place of the headers is for slot 0 then.
func (c *luks2Container) becomeLUKS1(h *luks1.Header) error {
	if err := h.Save(c.at.Header); err != nil {
		return err
	}
	end := h.Slots[1].MaterialOffset()
	if err := wipe(c.at.Header, byteRange{c.h.Size, c.h.Size + luks1.SectorSize}); err != nil {
		return err
	}
	return wipe(c.at.Header, byteRange{h.Slots[0].MaterialOffset(), end})
}

// moveSlot moves material into a free place.
func (c *luks2Container) moveSlot(slot int, to byteRange) error {
	from := c.place(slot)
	material, err := readRange(c.at.Header, from)
	if err != nil {
		return err
	}
	c.h.Keyslots[slot].Area.Offset = to.from
	update, err := c.h.Prepare(c.at.Header)
	if err != nil {
		return err
	}
	if err := luks.WriteMaterial(c.at.Header, slot, material, to.from); err != nil {
		return err
	}
	if err := update.Save(c.at.Header); err != nil {
		return err
	}
	return wipe(c.at.Header, from)
}

// move is one of material.
type move struct {
	slot int
	to   byteRange
}

// planMoves returns moves within an area that bring what lies at places to
// targets. Each is to where nothing lies at that time.
func planMoves(places, targets map[int]byteRange, area byteRange) (moves []move, possible bool) {
	places = maps.Clone(places)
	left := maps.Clone(targets)
	parked := map[int]bool{}
	add := func(slot int, to byteRange) {
		moves = append(moves, move{slot, to})
		places[slot] = to
	}
	for len(left) > 0 {
		progress := false
		for _, slot := range slices.Sorted(maps.Keys(left)) {
			if places[slot] != left[slot] {
				if overlaps(left[slot], places) {
					continue
				}
				add(slot, left[slot])
			}
			delete(left, slot)
			progress = true
		}
		// One that is in the way, perhaps of itself, moves where it is not.
		for _, slot := range slices.Sorted(maps.Keys(left)) {
			if progress || parked[slot] || !overlaps(places[slot], targets) {
				continue
			}
			if to, found := freeRange(places[slot].to-places[slot].from, area, places, targets); found {
				add(slot, to)
				parked[slot], progress = true, true
			}
		}
		if !progress {
			return nil, false
		}
	}
	return moves, true
}

// freeRange returns the first range in area of that size that overlaps no other.
func freeRange(size int64, area byteRange, others ...map[int]byteRange) (r byteRange, found bool) {
	for from := area.from; from+size <= area.to; from += luks2.AreaAlignment {
		r = byteRange{from, from + size}
		if !slices.ContainsFunc(others, func(o map[int]byteRange) bool { return overlaps(r, o) }) {
			return r, true
		}
	}
	return byteRange{}, false
}
