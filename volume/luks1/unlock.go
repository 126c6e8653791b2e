package luks1

import (
	"context"
	"fmt"
	"io"

	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/keyslot"
	"serpcrypt/volume/luks"
)

// OpenSlots tries a passphrase in key slots of the container r and returns which
// of them opens first, with the volume key out of it. The header needs to have
// passed Validate.
//
// The slots are divided among the processor's cores and derived from side by
// side. As soon as a slot's key is ready it is tried, before the others go on.
//
// Errors: luks.ErrMismatch if none opens, which damaged slots look like, too;
// luks.ErrSlotUnused; that of r, if none opens and some cannot be read; and that of
// ctx.
func (h *Header) OpenSlots(ctx context.Context, r io.ReaderAt, slots []int, passphrase []byte) (slot int, key *secret.Buffer, err error) {
	for _, slot := range slots {
		if h.Slots[slot].Active != SlotEnabled {
			return luks.NoSlot, nil, luks.ErrSlotUnused
		}
	}
	jobs := make([]kdf.Job, len(slots))
	for i, slot := range slots {
		jobs[i] = h.slotJob(&h.Slots[slot], passphrase)
	}
	container := keyslot.Container{
		Store:    r,
		Material: func(slot int) *keyslot.Material { return h.material(&h.Slots[slot]) },
		Check: func(ctx context.Context, _ []int, keys [][]byte) (right int, err error) {
			return h.checkKeys(ctx, keys)
		},
	}
	slot, key, err = container.Search(ctx, keyslot.PBKDF2(h.Hash.String(), slots, jobs))
	switch {
	case key != nil:
		return slot, key, nil
	case err == nil:
		return luks.NoSlot, nil, luks.ErrMismatch
	case ctx.Err() != nil:
		return luks.NoSlot, nil, err
	}
	return luks.NoSlot, nil, fmt.Errorf("luks1: %w", err)
}
