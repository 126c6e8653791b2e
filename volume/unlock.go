package volume

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/luks"
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
		if err := c.checkSlot(slot); err != nil {
			return nil, err
		}
		slots = []int{slot}
	}
	if len(slots) == 0 {
		return nil, whyNoSlot(c)
	}
	quick, slowOnes, err := divideSlots(ctx, c.header(), slots)
	if err != nil {
		return nil, err
	}
	var unreadable error
	try := func(slots []int) (*Key, error) {
		slot, key, err := c.openSlots(ctx, slots, passphrase)
		switch {
		case err == nil:
			return &Key{key, slot}, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, luks.ErrMismatch):
			unreadable = errors.Join(unreadable, err)
		}
		return nil, nil
	}
	if len(quick) > 0 {
		if key, err := try(quick); key != nil || err != nil {
			return key, err
		}
	}
	for _, s := range slowOnes {
		if slow != nil {
			slow(s.slot, s.time)
		}
		if key, err := try([]int{s.slot}); key != nil || err != nil {
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
	// No machine takes slowTime for so few iterations of slot and digest, nor for
	// so many KiB in all passes of Argon2.
	neverSlow       = 1_000_000
	neverSlowArgon2 = 4 << 20
	// As the speed need not be known well, and every unlocking pays for this.
	shortMeasurement = time.Millisecond
)

// whyNoSlot returns what keeps the first key slot from being tried, or
// ErrNoKeySlot.
func whyNoSlot(c container) error {
	for slot := range c.header().Slots {
		if err := c.checkSlot(slot); isFormatError(err) {
			return err
		}
	}
	return ErrNoKeySlot
}

// slowSlot is one that takes longer than slowTime.
type slowSlot struct {
	slot int
	time time.Duration
}

// divideSlots tells the slow slots from the others and puts them in the order of
// their times. An iteration of the digest takes no longer than one for a key. A
// slot whose Argon2 there is no memory for is quick to say so.
func divideSlots(ctx context.Context, h *Header, slots []int) (quick []int, slow []slowSlot, err error) {
	speeds := map[string]float64{}
	seconds := func(hash string, iterations int) float64 {
		hash = strings.ToLower(hash)
		if speeds[hash] == 0 && err == nil {
			speeds[hash], err = kdf.Speed(ctx, hash, h.KeyBytes, shortMeasurement)
		}
		return float64(iterations) / speeds[hash]
	}
	for _, slot := range slots {
		s := &h.Slots[slot]
		argon2 := kdf.Argon2{Variant: s.KDF, Time: s.Argon2.Time, Memory: s.Argon2.MemoryKiB, CPUs: s.Argon2.Lanes}
		if max(s.Iterations, h.DigestIterations) <= neverSlow && argon2.Blocks() <= neverSlowArgon2 {
			quick = append(quick, slot)
			continue
		}
		about := seconds(h.Hash, h.DigestIterations)
		if s.KDF == PBKDF2 {
			about += seconds(s.Hash, s.Iterations)
		} else if derivation, tooLittle := argon2.Estimate(ctx); tooLittle == nil {
			about += derivation.Seconds()
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
		if about > slowTime.Seconds() {
			slow = append(slow, slowSlot{slot, kdf.Seconds(about)})
		} else {
			quick = append(quick, slot)
		}
	}
	slices.SortStableFunc(slow, func(a, b slowSlot) int { return cmp.Compare(a.time, b.time) })
	return quick, slow, nil
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
	if err := checkVolumeKey(ctx, c, key); err != nil {
		return nil, err
	}
	own, err := secret.Copy(key)
	if err != nil {
		return nil, err
	}
	return &Key{own, AnySlot}, nil
}

// checkVolumeKey returns ErrVolumeKey for a key that is not the container's.
func checkVolumeKey(ctx context.Context, c container, key []byte) error {
	err := c.checkKey(ctx, key)
	if errors.Is(err, luks.ErrMismatch) {
		return ErrVolumeKey
	}
	return err
}
