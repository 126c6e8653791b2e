package volume

import (
	"crypto/rand"
	"fmt"
	"strings"

	"serpcrypt/volume/keyslot"
	"serpcrypt/volume/luks"
	"serpcrypt/volume/luks1"
	"serpcrypt/volume/luks2"
)

// convert leaves all material where it is but that of slot 0, which lies where
// the header of LUKS2 is going to be.
func (c *luks1Container) convert() (commit func() error, err error) {
	plan, reason := c.planLUKS2()
	if reason != "" {
		return nil, &ConvertError{TypeLUKS2, reason}
	}
	moved := *c.h
	if plan.inTheWay != luks.NoSlot {
		place := moved.Slots[plan.spare].MaterialSector
		moved.Slots[plan.spare] = moved.Slots[plan.inTheWay]
		moved.Slots[plan.spare].MaterialSector = place
	}
	h := (&luks1Container{c.at, &moved}).asLUKS2(plan.numbers)
	if err := h.Validate(c.at.headerSize, c.at.dataSize); err != nil {
		return nil, &ConvertError{TypeLUKS2, err.Error()}
	}
	return func() error {
		if plan.inTheWay != luks.NoSlot {
			if err := c.moveSlot(plan.inTheWay, plan.spare); err != nil {
				return err
			}
		}
		return c.becomeLUKS2(h)
	}, nil
}

// luks2Plan is how slots of LUKS1 become those of LUKS2.
type luks2Plan struct {
	numbers  map[int]int // in LUKS2, by the slot that has the material
	inTheWay int         // the slot whose place the header takes, or luks.NoSlot
	spare    int         // that gets its material
}

// planLUKS2 returns the plan, or the reason why there is none.
func (c *luks1Container) planLUKS2() (plan luks2Plan, reason string) {
	plan = luks2Plan{map[int]int{}, luks.NoSlot, luks.NoSlot}
	for slot, s := range c.h.Slots {
		place := c.place(slot)
		switch {
		case s.Active == luks1.SlotDisabled:
			if plan.spare == luks.NoSlot && place.from >= headerOfLUKS2 && isAligned(place) {
				plan.spare = slot
			}
			continue
		case s.Active != luks1.SlotEnabled:
			return plan, fmt.Sprintf("key slot %d is damaged: repair the header first", slot)
		case !isAligned(place):
			return plan, fmt.Sprintf("the material of key slot %d begins at byte %d, which is no multiple of %d", slot, place.from, luks2.AreaAlignment)
		}
		plan.numbers[slot] = slot
		if place.from >= headerOfLUKS2 {
			continue
		}
		if plan.inTheWay != luks.NoSlot {
			return plan, fmt.Sprintf("the header takes the places of the key slots %d and %d", plan.inTheWay, slot)
		}
		plan.inTheWay = slot
	}
	if plan.inTheWay == luks.NoSlot {
		return plan, ""
	}
	if plan.spare == luks.NoSlot {
		return plan, "all key slots are in use, and the header needs the place of one: remove a key first"
	}
	plan.numbers[plan.spare] = plan.inTheWay
	delete(plan.numbers, plan.inTheWay)
	return plan, ""
}

// headerOfLUKS2 is where the areas of key slots may begin.
const headerOfLUKS2 = 2 * luks2.MinSize

func isAligned(place byteRange) bool { return place.from%luks2.AreaAlignment == 0 }

// moveSlot gives a slot's key to another slot, under the same passphrase.
func (c *luks1Container) moveSlot(from, to int) error {
	material, err := readRange(c.at.Header, c.place(from))
	if err != nil {
		return err
	}
	if err := c.putSlot(c.h.Slots[from], material, to); err != nil {
		return err
	}
	return c.removeKeys(from)
}

// asLUKS2 returns the header that says the same. Slots get other numbers.
func (c *luks1Container) asLUKS2(numbers map[int]int) *luks2.Header {
	hash := strings.ToLower(c.h.Hash.String())
	spec := strings.ToLower(c.h.Spec())
	end := c.h.Space()
	if payload := c.h.PayloadOffset(); payload != 0 {
		end = min(payload, c.at.headerSize)
	}
	h := &luks2.Header{
		Size:         luks2.MinSize,
		SeqID:        1,
		ChecksumHash: "sha256",
		UUID:         c.h.UUID.String(),
		Metadata: luks2.Metadata{
			Keyslots: map[int]*luks2.Keyslot{},
			Tokens:   map[int]*luks2.Token{},
			Segments: map[int]*luks2.Segment{0: {
				Type: luks2.SegmentCrypt, Offset: c.h.PayloadOffset(), Size: luks2.DynamicSize, Encryption: spec, SectorSize: luks1.SectorSize,
			}},
			Config: luks2.Config{
				JSONSize:     luks2.MinSize - luks2.HeaderSize,
				KeyslotsSize: min(end-headerOfLUKS2, luks2.MaxKeyslotsSize) / luks2.AreaAlignment * luks2.AreaAlignment,
			},
		},
	}
	digest := &luks2.Digest{
		Type: luks2.DigestPBKDF2, Segments: []int{0}, Hash: hash, Iterations: int(c.h.DigestIterations),
		Salt: c.h.DigestSalt[:], Digest: c.h.Digest[:],
	}
	h.Digests = map[int]*luks2.Digest{0: digest}
	for slot, s := range c.h.Slots {
		number, isUsed := numbers[slot]
		if !isUsed {
			continue
		}
		keyBytes := int(c.h.KeyBytes)
		h.Keyslots[number] = &luks2.Keyslot{
			Type:    luks2.KeyslotLUKS2,
			KeySize: keyBytes,
			AF:      luks2.AF{Type: luks2.AFLUKS1, Stripes: keyslot.Stripes, Hash: hash},
			Area:    luks2.Area{Type: luks2.AreaRaw, Offset: s.MaterialOffset(), Size: luks2.AreaSize(keyBytes), Encryption: spec, KeySize: keyBytes},
			KDF:     luks2.KDF{Type: luks2.KDFPBKDF2, Salt: s.Salt[:], Hash: hash, Iterations: int(s.Iterations)},
		}
	}
	for number := range luks2.MaxSlots {
		if h.Keyslots[number] != nil {
			digest.Keyslots = append(digest.Keyslots, number)
		}
	}
	return h
}

// becomeLUKS2 writes the secondary copy and all of the primary one that is no
// part of the old header. Its first sector switches: from then on the secondary
// copy is good. The second sector, which has slots of the old header in it, makes
// the primary copy good too.
func (c *luks1Container) becomeLUKS2(h *luks2.Header) error {
	var copies [2][]byte
	for i := range copies {
		var salt [luks2.SaltSize]byte
		rand.Read(salt[:])
		var err error
		if copies[i], err = h.MarshalCopy(int64(i)*h.Size, salt); err != nil {
			return err
		}
	}
	const sector = luks1.SectorSize
	for _, piece := range []struct {
		p   []byte
		off int64
	}{
		{copies[1], h.Size},
		{copies[0][2*sector:], 2 * sector},
		{copies[0][:sector], 0},
		{copies[0][sector : 2*sector], sector},
	} {
		if err := luks.WriteChecked(c.at.Header, piece.p, piece.off, "header", luks.NoSlot); err != nil {
			return err
		}
	}
	// Material may be left where slot 0 was, if a conversion was interrupted.
	begin, end := h.KeyslotsArea()
	for _, k := range h.Keyslots {
		end = min(end, k.Area.Offset)
	}
	return wipe(c.at.Header, byteRange{begin, end})
}
