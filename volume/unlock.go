package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"serpcrypt/internal/secret"
)

// AnySlot stands for every key slot in use.
const AnySlot = -1

// Key is a volume key that has been compared with the header's digest, as
// Unlock and CheckKey do.
type Key struct {
	Bytes *secret.Buffer
	Slot  int // the key slot that it came out of, or AnySlot
}

// Close wipes the key.
func (k *Key) Close() { k.Bytes.Close() }

// SlowSlot is told of a key slot, before its derivation begins, that it takes
// longer than a minute here, and about how long.
type SlowSlot func(slot int, about time.Duration)

// Unlock finds the volume key by a passphrase, in one key slot or in any. All
// slots are tried side by side, but slow ones only if no other has opened, one
// after another, and slow is told before, unless it is nil.
//
// When ctx is done, it returns the error of that within milliseconds. Other
// errors: ErrPassphrase, ErrNoKeySlot, a *FormatError, or those of the store.
func Unlock(ctx context.Context, at Stores, passphrase []byte, slot int, slow SlowSlot) (*Key, error) {
	c, err := openContainer(ctx, at)
	if err != nil {
		return nil, err
	}
	return unlock(ctx, c, passphrase, slot, slow)
}

func unlock(ctx context.Context, c container, passphrase []byte, slot int, slow SlowSlot) (*Key, error) {
	slots := c.usableSlots()
	if slot != AnySlot {
		if !slices.Contains(slots, slot) {
			return nil, fmt.Errorf("%w: %d", ErrNoKeySlot, slot)
		}
		slots = []int{slot}
	}
	if len(slots) == 0 {
		return nil, ErrNoKeySlot
	}
	times, err := slowSlots(ctx, c.header(), slots)
	if err != nil {
		return nil, err
	}
	quick := len(slots) - len(times)
	var unreadable error
	try := func(slots []int) (*Key, error) {
		slot, key, err := c.openSlots(ctx, slots, passphrase)
		switch {
		case err == nil:
			return &Key{key, slot}, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, ErrPassphrase):
			unreadable = errors.Join(unreadable, err)
		}
		return nil, nil
	}
	if key, err := try(slots[:quick]); key != nil || err != nil {
		return key, err
	}
	for i, t := range times {
		if slow != nil {
			slow(slots[quick+i], t)
		}
		if key, err := try(slots[quick+i:][:1]); key != nil || err != nil {
			return key, err
		}
	}
	if unreadable != nil {
		return nil, unreadable
	}
	return nil, ErrPassphrase
}

const (
	slowTime = time.Minute
	// No machine takes slowTime for so few iterations of slot and digest.
	neverSlow = 1_000_000
	// As the speed need not be known well.
	shortMeasurement = 4 * time.Millisecond
)

// slowSlots returns the times of those slots at the end that are slow. The slots
// are in the order of their iterations.
func slowSlots(ctx context.Context, h *Header, slots []int) ([]time.Duration, error) {
	most := h.Slots[slots[len(slots)-1]].Iterations
	if max(most, h.DigestIterations) <= neverSlow {
		return nil, nil
	}
	speed, err := MeasureUnlockSpeed(ctx, h.Cipher+"-"+h.Mode, h.Hash, h.KeyBytes, shortMeasurement)
	if err != nil {
		return nil, err
	}
	var times []time.Duration
	for _, slot := range slots {
		if t := speed.Time(h.Slots[slot].Iterations, h.DigestIterations); t > slowTime {
			times = append(times, t)
		}
	}
	return times, nil
}

// CheckKey makes a Key of the bytes of a volume key, which it copies. Like
// Unlock it returns soon when ctx is done.
//
// Errors: ErrVolumeKey, a *FormatError, or those of the store.
func CheckKey(ctx context.Context, at Stores, key []byte) (*Key, error) {
	c, err := openContainer(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := c.checkKey(ctx, key); err != nil {
		return nil, err
	}
	return &Key{secretCopy(key), AnySlot}, nil
}

func secretCopy(b []byte) *secret.Buffer {
	own := secret.New(len(b))
	copy(own.Bytes(), b)
	return own
}
