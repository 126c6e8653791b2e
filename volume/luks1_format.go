package volume

import (
	"context"

	"serpcrypt/volume/luks"
	"serpcrypt/volume/luks1"
)

// luks1Draft is a LUKS1 header in the making.
type luks1Draft struct {
	h        *luks1.Header
	detached bool
}

func newLUKS1Draft(p Params) (draft, error) {
	switch {
	case p.SectorSize != 0 && p.SectorSize != luks1.SectorSize:
		return nil, luks.BadParam("sector size", "LUKS1 has only sectors of 512 bytes")
	case p.Label != "" || p.Subsystem != "":
		return nil, errNoTexts
	}
	if err := luks.CheckSlotNumber(p.Slot, luks1.NumSlots); err != nil {
		return nil, err
	}
	if err := p.keyParams().checkLUKS1(p.Hash); err != nil {
		return nil, err
	}
	h, err := luks1.New(luks1.Params{
		Spec:          p.Cipher,
		KeyBytes:      p.KeyBits / 8,
		Hash:          p.Hash,
		UUID:          p.UUID,
		PayloadOffset: p.PayloadOffset,
		Detached:      p.Detached,
	})
	if err != nil {
		return nil, err
	}
	return &luks1Draft{h, p.Detached}, nil
}

func (d *luks1Draft) minSize() int64 { return d.h.PayloadOffset() + luks1.SectorSize }
func (d *luks1Draft) space() int64   { return d.h.Space() }

// clear writes what cryptsetup writes there too: random bytes where key material
// can be, and zeros elsewhere up to the payload.
func (d *luks1Draft) clear(ctx context.Context, s Store) error {
	end := d.h.Space()
	if payload := d.h.PayloadOffset(); payload != 0 && !d.detached {
		const far = 1 << 20 // a payload may be put very far behind the slots
		end = min(payload, d.h.EndOfSlots()+far)
	}
	if err := writeZeros(ctx, s, end); err != nil {
		return err
	}
	return d.h.FillSlots(s)
}

func (d *luks1Draft) seal(ctx context.Context, s Store, key, passphrase []byte, p Params) error {
	if err := d.h.SetDigest(ctx, key, DigestIterations(p.Iterations)); err != nil {
		return err
	}
	slot, err := d.h.SealSlot(ctx, p.Slot, key, passphrase, p.Iterations)
	if err != nil {
		return err
	}
	return d.h.WriteSlot(s, slot)
}

func (d *luks1Draft) save(s Store) error { return d.h.Save(s) }

func (d *luks1Draft) container(at location) container {
	return &luks1Container{at, d.h}
}

var errNoTexts = luks.BadParam("label", "LUKS1 has neither label nor subsystem")
