package volume

import (
	"context"

	"serpcrypt/volume/luks"
	"serpcrypt/volume/luks2"
)

// luks2Draft is a LUKS2 header in the making.
type luks2Draft struct{ h *luks2.Header }

// bigSectors are what a payload gets by default that is whole sectors of them:
// fewer of them are as many bytes.
const bigSectors = 4096

func newLUKS2Draft(p Params, dataSize int64) (draft, error) {
	if err := luks.CheckSlotNumber(p.Slot, luks2.MaxSlots); err != nil {
		return nil, err
	}
	if err := p.keyParams().checkLUKS2(); err != nil {
		return nil, err
	}
	sectorSize := p.SectorSize
	if sectorSize == 0 {
		sectorSize = 512 // until the payload's size is known
	}
	h, err := luks2.New(luks2.Params{
		Spec:       p.Cipher,
		KeyBytes:   p.KeyBits / 8,
		SectorSize: sectorSize,
		UUID:       p.UUID,
		Label:      p.Label,
		Subsystem:  p.Subsystem,
		DataOffset: p.PayloadOffset,
		Detached:   p.Detached,
		StoreSize:  dataSize,
	})
	if err != nil {
		return nil, err
	}
	s := h.Segments[0]
	if payload := (dataSize - s.Offset) / 512 * 512; p.SectorSize == 0 && payload > 0 && payload%bigSectors == 0 {
		s.SectorSize = bigSectors
	} else if payload > 0 && payload%int64(sectorSize) != 0 {
		return nil, luks.BadParam("sector size", "the payload is no whole sectors of this size")
	}
	return &luks2Draft{h}, nil
}

func (d *luks2Draft) minSize() int64 {
	s := d.h.Segments[0]
	return s.Offset + int64(s.SectorSize)
}

func (d *luks2Draft) space() int64 {
	_, end := d.h.KeyslotsArea()
	return end
}

// clear writes zeros to the places of the header, and random bytes to all where
// key material can be, so that it does not show where it is.
func (d *luks2Draft) clear(ctx context.Context, s Store) error {
	begin, end := d.h.KeyslotsArea()
	if err := writeZeros(ctx, s, begin); err != nil {
		return err
	}
	return wipe(s, byteRange{begin, end})
}

func (d *luks2Draft) seal(ctx context.Context, s Store, key, passphrase []byte, p Params) error {
	if err := d.h.AddDigest(ctx, key, p.Hash, DigestIterations(p.Iterations)); err != nil {
		return err
	}
	slot, err := d.h.SealSlot(ctx, p.Slot, key, passphrase, p.keyParams().luks2())
	if err != nil {
		return err
	}
	return d.h.WriteSlot(s, slot)
}

func (d *luks2Draft) save(s Store) error { return d.h.Save(s) }

func (d *luks2Draft) container(at location) container {
	return &luks2Container{at: at, h: d.h}
}
