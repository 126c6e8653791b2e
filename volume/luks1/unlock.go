package luks1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/af"
)

// OpenSlots tries a passphrase in key slots of the container r and returns which
// of them opens first, with the volume key out of it. The header needs to have
// passed Validate.
//
// The slots are divided among the processor's cores and derived from side by
// side. As soon as a slot's key is ready it is tried, before the others go on.
//
// Errors: ErrMismatch if none opens, which damaged slots look like, too;
// ErrSlotUnused; that of r, if none opens and some cannot be read; and that of
// ctx.
func (h *Header) OpenSlots(ctx context.Context, r io.ReaderAt, slots []int, passphrase []byte) (slot int, key *secret.Buffer, err error) {
	for _, slot := range slots {
		if h.Slots[slot].Active != SlotEnabled {
			return noSlot, nil, ErrSlotUnused
		}
	}
	u := &unlocking{h: h, r: r, passphrase: passphrase}
	u.ctx, u.end = context.WithCancel(ctx)
	defer u.end()
	cores := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for core := range min(cores, len(slots)) {
		var share []int
		for i := core; i < len(slots); i += cores {
			share = append(share, slots[i])
		}
		all.Go(func() { u.work(share) })
	}
	all.Wait()
	switch {
	case u.key != nil:
		return u.slot, u.key, nil
	case ctx.Err() != nil:
		return noSlot, nil, ctx.Err()
	case u.errs != nil:
		return noSlot, nil, u.errs
	}
	return noSlot, nil, ErrMismatch
}

// unlocking is what the cores share.
type unlocking struct {
	h          *Header
	r          io.ReaderAt
	passphrase []byte

	ctx context.Context
	end context.CancelFunc // for all, as a slot has opened

	mu   sync.Mutex
	slot int
	key  *secret.Buffer // nil until a slot has opened
	errs error
}

func (u *unlocking) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.errs = errors.Join(u.errs, err)
}

// work tries the slots in one goroutine.
func (u *unlocking) work(slots []int) {
	jobs := make([]kdf.Job, len(slots))
	for i, slot := range slots {
		jobs[i] = u.h.slotJob(&u.h.Slots[slot], u.passphrase)
	}
	err := kdf.Derive(u.ctx, u.h.Hash.String(), jobs, func(ready []kdf.Derived) error {
		return u.try(slots, ready)
	})
	if err != nil {
		u.fail(err)
	}
}

// try opens the slots whose keys are ready.
func (u *unlocking) try(slots []int, ready []kdf.Derived) error {
	var opened []int
	var keys [][]byte
	for _, d := range ready {
		if u.ctx.Err() != nil {
			return u.ctx.Err()
		}
		slot := slots[d.Job]
		key, err := u.h.mergeSlot(u.r, slot, d.Key)
		if err != nil {
			u.fail(err)
			continue
		}
		defer key.Close()
		opened, keys = append(opened, slot), append(keys, key.Bytes())
	}
	right, err := u.h.checkKeys(u.ctx, keys)
	if err != nil || right < 0 {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.key == nil {
		u.slot, u.key = opened[right], secret.New(len(keys[right]))
		copy(u.key.Bytes(), keys[right])
	}
	u.end()
	return nil
}

// mergeSlot returns what the slot's material decrypts to under a key: the volume
// key, if it is the right one.
func (h *Header) mergeSlot(r io.ReaderAt, slot int, slotKey []byte) (*secret.Buffer, error) {
	material := h.newMaterial()
	defer material.Close()
	if _, err := io.ReadFull(io.NewSectionReader(r, h.Slots[slot].MaterialOffset(), int64(material.Len())), material.Bytes()); err != nil {
		return nil, fmt.Errorf("luks1: key slot %d: %w", slot, err)
	}
	cipher, err := h.slotCipher(slotKey)
	if err != nil {
		return nil, err
	}
	cipher.Decrypt(material.Bytes(), material.Bytes(), 0)
	cipher.Wipe()
	key := secret.New(int(h.KeyBytes))
	if err := af.Merge(key.Bytes(), material.Bytes()[:h.KeyBytes*Stripes], Stripes, h.Hash.String()); err != nil {
		key.Close()
		return nil, err
	}
	return key, nil
}
