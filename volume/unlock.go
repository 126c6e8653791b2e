package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// Unlock finds the volume key by a passphrase, in one key slot or in any. It
// returns at once with the error of ctx when that is done, though a derivation
// that has begun goes on until its end, with a copy of the passphrase.
//
// Errors: ErrPassphrase, ErrNoKeySlot, a *FormatError, or those of the store.
func Unlock(ctx context.Context, s Store, passphrase []byte, slot int) (*Key, error) {
	c, err := openContainer(s)
	if err != nil {
		return nil, err
	}
	return unlock(ctx, c, passphrase, slot)
}

func unlock(ctx context.Context, c container, passphrase []byte, slot int) (*Key, error) {
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
	var unreadable error
	for _, slot := range slots {
		key, err := openSlot(ctx, c, slot, passphrase)
		switch {
		case err == nil:
			return &Key{key, slot}, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, ErrPassphrase):
			unreadable = errors.Join(unreadable, err)
		}
	}
	if unreadable != nil {
		return nil, unreadable
	}
	return nil, ErrPassphrase
}

// CheckKey makes a Key of the bytes of a volume key, which it copies. Like
// Unlock it returns at once when ctx is done.
//
// Errors: ErrVolumeKey, a *FormatError, or those of the store.
func CheckKey(ctx context.Context, s Store, key []byte) (*Key, error) {
	c, err := openContainer(s)
	if err != nil {
		return nil, err
	}
	return checkKey(ctx, c, key)
}

func checkKey(ctx context.Context, c container, key []byte) (*Key, error) {
	own := secretCopy(key)
	return beside(ctx, func() (*Key, error) {
		if err := c.checkKey(own.Bytes()); err != nil {
			own.Close()
			return nil, err
		}
		return &Key{own, AnySlot}, nil
	}, (*Key).Close)
}

func openSlot(ctx context.Context, c container, slot int, passphrase []byte) (*secret.Buffer, error) {
	own := secretCopy(passphrase)
	return beside(ctx, func() (*secret.Buffer, error) {
		defer own.Close()
		return c.openSlot(slot, own.Bytes())
	}, (*secret.Buffer).Close)
}

func secretCopy(b []byte) *secret.Buffer {
	own := secret.New(len(b))
	copy(own.Bytes(), b)
	return own
}

// beside runs work, which nothing can interrupt, and returns what it does, or
// the error of ctx as soon as that is done. Then work goes on by itself, and
// what it gives in the end is dropped. So it must use nothing that the caller
// may take away meanwhile.
func beside[T any](ctx context.Context, work func() (T, error), drop func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	go func() {
		value, err := work()
		select {
		case done <- result{value, err}:
		case <-ctx.Done():
			if err == nil {
				drop(value)
			}
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
