package keyslot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"serpcrypt/internal/hashes"
	"serpcrypt/kdf"
)

var background = context.Background()

var volumeKey = bytes.Repeat([]byte{7}, 32)

const length = 1 << 16 // from one slot's material to the next, and more than it

func materialOf(slot int) *Material {
	return &Material{int64(slot) * length * 2, 32, "sha1", "serpent-cbc-plain64"}
}

func slotKeyOf(slot int) []byte { return bytes.Repeat([]byte{byte(slot)}, 32) }

// newContainer has the volume key in a slot, and other keys in the others.
func newContainer(t *testing.T, slots int, right ...int) *Container {
	t.Helper()
	store := make([]byte, 2*length*slots)
	for slot := range slots {
		key := bytes.Clone(volumeKey)
		if !slices.Contains(right, slot) {
			key[slot] ^= 1
		}
		sealed, err := materialOf(slot).Seal(key, slotKeyOf(slot))
		if err != nil {
			t.Fatal(err)
		}
		copy(store[materialOf(slot).Offset:], sealed)
	}
	return &Container{
		Store:    bytes.NewReader(store),
		Material: materialOf,
		Check: func(_ context.Context, slots []int, keys [][]byte) (int, error) {
			if len(slots) != len(keys) {
				return 0, fmt.Errorf("%d slots, %d keys", len(slots), len(keys))
			}
			return slices.IndexFunc(keys, func(key []byte) bool { return bytes.Equal(key, volumeKey) }), nil
		},
	}
}

// inTurns makes the keys of slots ready, so many at once.
func inTurns(atOnce int, slots ...int) Derivation {
	return Derivation{slots, func(ctx context.Context, ready func([]kdf.Derived) error) error {
		var derived []kdf.Derived
		for i, slot := range slots {
			derived = append(derived, kdf.Derived{Job: i, Key: slotKeyOf(slot)})
		}
		for some := range slices.Chunk(derived, atOnce) {
			if err := ready(some); err != nil {
				return err
			}
		}
		return ctx.Err()
	}}
}

// never is a derivation that only the end of the context ends.
var never = Derivation{nil, func(ctx context.Context, _ func([]kdf.Derived) error) error {
	<-ctx.Done()
	return ctx.Err()
}}

func TestSearchFindsTheSlot(t *testing.T) {
	c := newContainer(t, 5, 3)
	for _, work := range [][]Derivation{
		{inTurns(1, 0, 1, 2, 3, 4)},
		{inTurns(5, 4, 3, 2, 1, 0)},
		{inTurns(2, 0, 1), inTurns(2, 2, 4, 3), never},
		{never, never, inTurns(1, 3)},
	} {
		slot, key, err := c.Search(background, work)
		if err != nil || slot != 3 || !bytes.Equal(key.Bytes(), volumeKey) {
			t.Fatalf("slot %d has opened, %v", slot, err)
		}
		key.Close()
	}
	if _, key, err := c.Search(background, []Derivation{inTurns(2, 0, 1, 2), inTurns(1, 4)}); key != nil || err != nil {
		t.Errorf("none opens: %v", err)
	}
	if _, key, err := c.Search(background, nil); key != nil || err != nil {
		t.Errorf("no work: %v", err)
	}
}

func TestSearchErrors(t *testing.T) {
	c := newContainer(t, 5, 3)
	c.Material = func(slot int) *Material {
		m := materialOf(slot)
		if slot < 2 {
			m.Hash = "md5"
		}
		return m
	}
	slot, key, err := c.Search(background, []Derivation{inTurns(2, 0, 1, 2, 3)})
	if err != nil || slot != 3 {
		t.Fatalf("slot %d has opened, %v", slot, err)
	}
	key.Close()
	_, key, err = c.Search(background, []Derivation{inTurns(4, 2, 1, 0)})
	var failed *Error
	if key != nil || !errors.As(err, &failed) || failed.Slot != 1 || !errors.As(err, new(*hashes.UnknownError)) {
		t.Errorf("slots with an unknown hash: %v", err)
	}

	checkFails := errors.New("check fails")
	c = newContainer(t, 2)
	c.Check = func(context.Context, []int, [][]byte) (int, error) { return -1, checkFails }
	if _, key, err := c.Search(background, []Derivation{inTurns(1, 0), inTurns(1, 1)}); key != nil || !errors.Is(err, checkFails) {
		t.Errorf("got %v", err)
	}

	ctx, cancel := context.WithCancel(background)
	c.Check = func(context.Context, []int, [][]byte) (int, error) {
		cancel()
		return -1, nil
	}
	if _, key, err := c.Search(ctx, []Derivation{inTurns(1, 0), never}); key != nil || err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

// TestPBKDF2Shares: each slot is in one, with its own job.
func TestPBKDF2Shares(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	slots := []int{7, 1, 4}
	jobs := make([]kdf.Job, len(slots))
	want := map[int][]byte{}
	for i, slot := range slots {
		jobs[i] = kdf.Job{Password: []byte("password"), Salt: []byte{byte(slot)}, Iterations: 10 + i, KeyLen: 20 + i}
		key, err := kdf.PBKDF2(background, "sha256", jobs[i])
		if err != nil {
			t.Fatal(err)
		}
		defer key.Close()
		want[slot] = key.Bytes()
	}
	for cores, shares := range map[int]int{1: 1, 2: 2, 3: 3, 8: 3} {
		runtime.GOMAXPROCS(cores)
		work := PBKDF2("sha256", slots, jobs)
		if len(work) != shares {
			t.Errorf("%d cores: %d shares, want %d", cores, len(work), shares)
		}
		seen := map[int]int{}
		for _, d := range work {
			err := d.Derive(background, func(ready []kdf.Derived) error {
				for _, one := range ready {
					slot := d.Slots[one.Job]
					seen[slot]++
					if !bytes.Equal(one.Key, want[slot]) {
						t.Errorf("%d cores: slot %d has the key %x, want %x", cores, slot, one.Key, want[slot])
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		for _, slot := range slots {
			if seen[slot] != 1 {
				t.Errorf("%d cores: slot %d was ready %d times", cores, slot, seen[slot])
			}
		}
	}
}
