package luks2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/keyslot"
	"serpcrypt/volume/luks"
)

// UsableSlots returns the key slots that are tried if none is named, by their
// number: not those that are to be ignored, nor those with another key than the
// volume's. Some of them may turn out not to be possible to try.
func (h *Header) UsableSlots() []int {
	var slots []int
	for _, slot := range slices.Sorted(maps.Keys(h.Keyslots)) {
		if h.Keyslots[slot].priority() != PriorityIgnore && !h.IsUnbound(slot) {
			slots = append(slots, slot)
		}
	}
	return slots
}

// IsUnbound reports whether a key slot has a key that is not the volume's.
func (h *Header) IsUnbound(slot int) bool {
	d := h.digestOf(slot)
	return d != nil && !d.isOfVolume()
}

func (k *Keyslot) priority() int {
	if k.Priority == nil {
		return PriorityNormal
	}
	return *k.Priority
}

// OpenSlots tries a passphrase in key slots of the header's store r and returns
// which of them opens first, with the volume key out of it. The header needs to
// have passed Validate.
//
// Slots of a higher priority come first. Among those of one, all that have
// PBKDF2 are derived from side by side, and then those with Argon2, one after
// another, the cheapest first.
//
// Errors: luks.ErrMismatch if none opens, which damaged slots look like, too;
// luks.ErrSlotUnused; that of ctx; and, if none opens and some cannot be tried, what
// keeps them from it, joined: a *luks.FieldError, or a *keyslot.Error with a
// *kdf.MemoryError or one of r.
func (h *Header) OpenSlots(ctx context.Context, r io.ReaderAt, slots []int, passphrase []byte) (slot int, key *secret.Buffer, err error) {
	var errs error
	var possible []int
	for _, slot := range slots {
		if h.Keyslots[slot] == nil {
			return luks.NoSlot, nil, luks.ErrSlotUnused
		}
		if err := h.checkSlot(slot); err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		possible = append(possible, slot)
	}
	container := keyslot.Container{
		Store:    r,
		Material: func(slot int) *keyslot.Material { return h.Keyslots[slot].material() },
		Check:    h.checkKeys,
	}
	for _, work := range h.derivations(possible, passphrase) {
		slot, key, err := container.Search(ctx, work)
		switch {
		case key != nil:
			return slot, key, nil
		case ctx.Err() != nil:
			return luks.NoSlot, nil, ctx.Err()
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("luks2: %w", err))
		}
	}
	return luks.NoSlot, nil, cmp.Or(errs, luks.ErrMismatch)
}

// derivations returns what is done for the slots: one list after another.
func (h *Header) derivations(slots []int, passphrase []byte) [][]keyslot.Derivation {
	byPriority := map[int][]int{}
	for _, slot := range slots {
		priority := h.Keyslots[slot].priority()
		byPriority[priority] = append(byPriority[priority], slot)
	}
	var all [][]keyslot.Derivation
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(byPriority))) {
		byHash := map[string][]int{}
		var argon2 []int
		for _, slot := range byPriority[priority] {
			if k := &h.Keyslots[slot].KDF; k.Type == KDFPBKDF2 {
				hash := strings.ToLower(k.Hash)
				byHash[hash] = append(byHash[hash], slot)
			} else {
				argon2 = append(argon2, slot)
			}
		}
		var together []keyslot.Derivation
		for hash, slots := range byHash {
			jobs := make([]kdf.Job, len(slots))
			for i, slot := range slots {
				jobs[i] = h.Keyslots[slot].job(passphrase)
			}
			together = append(together, keyslot.PBKDF2(hash, slots, jobs)...)
		}
		all = append(all, together)
		slices.SortStableFunc(argon2, func(a, b int) int {
			return cmp.Compare(h.Keyslots[a].KDF.argon2().Blocks(), h.Keyslots[b].KDF.argon2().Blocks())
		})
		for _, slot := range argon2 {
			all = append(all, []keyslot.Derivation{h.argon2Derivation(slot, passphrase)})
		}
	}
	return all
}

func (h *Header) argon2Derivation(slot int, passphrase []byte) keyslot.Derivation {
	return keyslot.Derivation{Slots: []int{slot}, Derive: func(ctx context.Context, ready func([]kdf.Derived) error) error {
		key, err := h.Keyslots[slot].derive(ctx, passphrase)
		if err != nil {
			return &keyslot.Error{Slot: slot, Err: err}
		}
		defer key.Close()
		return ready([]kdf.Derived{{Job: 0, Key: key.Bytes()}})
	}}
}

// checkKeys returns which of the keys out of slots has the digest of its slot,
// or -1.
func (h *Header) checkKeys(ctx context.Context, slots []int, keys [][]byte) (right int, err error) {
	places := map[*Digest][]int{}
	for i, slot := range slots {
		d := h.digestOf(slot)
		places[d] = append(places[d], i)
	}
	for d, own := range places {
		ownKeys := make([][]byte, len(own))
		for i, place := range own {
			ownKeys[i] = keys[place]
		}
		match, err := d.match(ctx, ownKeys)
		if err != nil {
			return -1, err
		}
		if match >= 0 {
			return own[match], nil
		}
	}
	return -1, nil
}

// checkSlot returns what keeps a key slot from being tried, as a *luks.FieldError.
func (h *Header) checkSlot(slot int) error {
	const anySize = math.MaxInt64 // where the store ends, reading does
	if err := h.SlotFault(slot, anySize); err != nil {
		return err
	}
	if h.IsUnbound(slot) {
		return h.faultAt(keyslotPath(slot), "its key is not that of segment %d", dataSegment)
	}
	return nil
}
