package volume

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/luks"
)

func TestCheapSlotsComeFirst(t *testing.T) {
	s := format(t, quick, 512)
	for slot, iterations := range map[int]uint32{0: 2147483647, 2: 1000, 4: 5000, 7: 1000} {
		putSlotField(t, s, slot, atActive, 0x00AC71F3)
		putSlotField(t, s, slot, atIterations, iterations)
	}
	c, err := openContainer(background, Attached(s))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.usableSlots(), []int{2, 7, 4, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

const forEver = kdf.MaxIterations // minutes at least

// listContainer says which slots are tried, and in what order.
type listContainer struct {
	container
	iterations map[int]int // of each slot
	slots      []int
	opens      int
	events     []string
}

func (c *listContainer) usableSlots() []int { return c.slots }

func (c *listContainer) header() *Header {
	h := &Header{Cipher: "serpent", Mode: "xts-plain64", Hash: "sha1", KeyBytes: 64, DigestIterations: 1000, Slots: make([]Slot, 8)}
	for slot, n := range c.iterations {
		h.Slots[slot] = Slot{KDF: PBKDF2, Hash: "sha1", Iterations: n}
	}
	return h
}

func (c *listContainer) checkSlot(slot int) error {
	if slices.Contains(c.slots, slot) {
		return nil
	}
	return ErrNoKeySlot
}

func (c *listContainer) openSlots(_ context.Context, slots []int, _ []byte) (int, *secret.Buffer, error) {
	if len(slots) > 0 {
		c.events = append(c.events, fmt.Sprint("try ", slots))
	}
	if slices.Contains(slots, c.opens) {
		return c.opens, secretCopy(make([]byte, 64)), nil
	}
	return luks.NoSlot, nil, luks.ErrMismatch
}

// TestSlowSlotsComeLast: each is announced, and none before it is needed.
func TestSlowSlotsComeLast(t *testing.T) {
	mixed := map[int]int{5: 1000, 2: 4000, 0: forEver - 1, 7: forEver}
	for _, c := range []struct {
		name string
		slot int // asked for
		in   int // opens with the passphrase
		want []string
	}{
		{"none opens", AnySlot, luks.NoSlot, []string{"try [5 2]", "slow 0", "try [0]", "slow 7", "try [7]"}},
		{"a quick one", AnySlot, 2, []string{"try [5 2]"}},
		{"a slow one", AnySlot, 0, []string{"try [5 2]", "slow 0", "try [0]"}},
		{"only a quick one is asked for", 5, 5, []string{"try [5]"}},
		{"only a slow one is asked for", 7, 7, []string{"slow 7", "try [7]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &listContainer{iterations: mixed, slots: []int{5, 2, 0, 7}, opens: c.in}
			key, err := unlock(background, l, passphrase, c.slot, func(slot int, about time.Duration) {
				if about <= time.Minute {
					t.Errorf("slot %d takes %v only", slot, about)
				}
				l.events = append(l.events, fmt.Sprint("slow ", slot))
			})
			if c.in == luks.NoSlot && err != ErrPassphrase || c.in != luks.NoSlot && (err != nil || key.Slot != c.in) {
				t.Errorf("got %+v, %v", key, err)
			}
			if !slices.Equal(l.events, c.want) {
				t.Errorf("got %q, want %q", l.events, c.want)
			}
			if key, err := unlock(background, l, passphrase, c.slot, nil); err == nil && key.Slot != c.in {
				t.Errorf("with nobody to tell: %+v", key)
			}
		})
	}
}

// TestSlowDigest: then every slot is slow.
func TestSlowDigest(t *testing.T) {
	s := format(t, quick, 512)
	putField(t, s, atDigestIterations, forEver)
	ctx, cancel := context.WithCancel(background)
	told := 0
	_, err := Unlock(ctx, Attached(s), passphrase, AnySlot, func(slot int, _ time.Duration) {
		told++
		cancel()
	})
	if err != context.Canceled || told != 1 {
		t.Errorf("got %v, told of %d slots", err, told)
	}
}
