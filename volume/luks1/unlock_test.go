package luks1

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/kdf"
	"serpcrypt/volume/luks"
)

const forEver = kdf.MaxIterations // minutes at least

// onCores runs a test with so many cores at most.
func onCores(t *testing.T, cores int, test func(t *testing.T)) {
	t.Run(fmt.Sprintf("cores=%d", cores), func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		test(t)
	})
}

// manySlots is a container whose slots have these counts of iterations. The
// passphrase of a slot is its number.
func manySlots(t *testing.T, hash string, iterations ...int) (*Header, *faultstore.Store, []byte) {
	t.Helper()
	h, err := New(Params{Spec: "serpent-xts-plain64", KeyBytes: 64, Hash: hash})
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, h.KeyBytes)
	rand.NewChaCha8([32]byte{7}).Read(key)
	if err := h.SetDigest(background, key, 1000); err != nil {
		t.Fatal(err)
	}
	s := faultstore.New(make([]byte, h.PayloadOffset()))
	for slot, n := range iterations {
		const quick = 2000
		if err := writeSlot(h, s, slot, key, passphraseOf(slot), min(n, quick)); err != nil {
			t.Fatal(err)
		}
		h.Slots[slot].Iterations = uint32(n)
	}
	return h, s, key
}

func passphraseOf(slot int) []byte { return fmt.Append(nil, slot) }

func slotsOf(h *Header) (slots []int) {
	for i := range h.Slots {
		if h.Slots[i].Active == SlotEnabled {
			slots = append(slots, i)
		}
	}
	return slots
}

// TestWhichSlotOpened: counts of all kinds, equal ones among them, and none in
// an order that helps.
func TestWhichSlotOpened(t *testing.T) {
	for _, hash := range []string{"sha1", "sha256"} {
		for _, iterations := range [][]int{{1000}, {1500, 1000}, {1300, 1000, 1000, 1299, 1001, 1000, 2000, 1000}} {
			h, s, key := manySlots(t, hash, iterations...)
			slots := slotsOf(h)
			for _, cores := range []int{1, 3, 16} {
				onCores(t, cores, func(t *testing.T) {
					for _, slot := range slots {
						opened, got, err := h.OpenSlots(background, s, slots, passphraseOf(slot))
						if err != nil {
							t.Fatalf("%s, %d slots: %v", hash, len(slots), err)
						}
						if opened != slot || !bytes.Equal(got.Bytes(), key) {
							t.Errorf("%s: passphrase of slot %d has opened %d", hash, slot, opened)
						}
						got.Close()
					}
					if opened, got, err := h.OpenSlots(background, s, slots, []byte("9")); opened != luks.NoSlot || got != nil || err != luks.ErrMismatch {
						t.Errorf("%s, wrong passphrase: slot %d, %v", hash, opened, err)
					}
				})
			}
		}
	}
}

func TestOpenSlotsWithTheSamePassphrase(t *testing.T) {
	h, s, key := manySlots(t, "sha1", 1000, 1000, 1000)
	for slot := range 3 {
		h.Slots[slot].Active = SlotDisabled
		if err := writeSlot(h, s, slot, key, []byte("same"), 1000); err != nil {
			t.Fatal(err)
		}
	}
	slot, got, err := h.OpenSlots(background, s, []int{2, 1}, []byte("same"))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if slot != 1 && slot != 2 || !bytes.Equal(got.Bytes(), key) {
		t.Errorf("slot %d has opened, with key %x", slot, got.Bytes())
	}
}

func TestOpenSlotsErrors(t *testing.T) {
	h, s, _ := manySlots(t, "sha1", 1000, 1000, 1000)
	if _, _, err := h.OpenSlots(background, s, []int{0, 3}, passphraseOf(0)); err != luks.ErrSlotUnused {
		t.Errorf("slot 3 is free: %v", err)
	}
	if slot, key, err := h.OpenSlots(background, s, nil, passphraseOf(0)); key != nil || err != luks.ErrMismatch {
		t.Errorf("no slot: %d has opened, %v", slot, err)
	}
	// A slot that cannot be read says so only if no other opens.
	s.Fault = func(op faultstore.Op) error {
		if op.Off == h.Slots[1].MaterialOffset() {
			return syscall.EIO
		}
		return nil
	}
	slot, key, err := h.OpenSlots(background, s, slotsOf(h), passphraseOf(2))
	if err != nil || slot != 2 {
		t.Fatalf("slot %d has opened, %v", slot, err)
	}
	key.Close()
	for _, passphrase := range []string{"1", "wrong"} {
		if _, _, err := h.OpenSlots(background, s, slotsOf(h), []byte(passphrase)); !errors.Is(err, syscall.EIO) {
			t.Errorf("passphrase %s: %v", passphrase, err)
		}
	}
}

// reads remembers where a store is read.
type reads struct {
	io.ReaderAt
	offsets []int64
	then    func() // after each one
}

func (r *reads) ReadAt(p []byte, off int64) (int, error) {
	r.offsets = append(r.offsets, off)
	defer r.then()
	return r.ReaderAt.ReadAt(p, off)
}

// TestQuickSlotsAreTriedFirst: while the others would take for ever.
func TestQuickSlotsAreTriedFirst(t *testing.T) {
	for _, hash := range []string{"sha1", "sha512"} {
		for _, cores := range []int{1, 2, 8} {
			onCores(t, cores, func(t *testing.T) {
				h, s, key := manySlots(t, hash, forEver, forEver, 1000, forEver)
				r := &reads{s, nil, func() {}}
				slot, got, err := h.OpenSlots(background, r, slotsOf(h), passphraseOf(2))
				if err != nil || slot != 2 || !bytes.Equal(got.Bytes(), key) {
					t.Fatalf("%s: slot %d has opened, %v", hash, slot, err)
				}
				got.Close()
				ctx, cancel := context.WithCancel(background)
				r.then = cancel
				if _, _, err := h.OpenSlots(ctx, r, slotsOf(h), []byte("wrong")); err != context.Canceled {
					t.Errorf("%s: cancelled when the quick slot had been tried: %v", hash, err)
				}
				tried := h.Slots[2].MaterialOffset()
				if !slices.Equal(r.offsets, []int64{tried, tried}) {
					t.Errorf("%s: read at %d, want %d twice", hash, r.offsets, tried)
				}
			})
		}
	}
}

// TestCancelDigest: a header may say that to check a volume key takes for ever.
func TestCancelDigest(t *testing.T) {
	for _, hash := range []string{"sha1", "sha512"} {
		h, s, key := manySlots(t, hash, 1000)
		h.DigestIterations = forEver
		ctx, cancel := context.WithCancel(background)
		r := &reads{s, nil, func() { go cancel() }}
		if _, _, err := h.OpenSlots(ctx, r, []int{0}, passphraseOf(0)); err != context.Canceled {
			t.Errorf("%s: OpenSlots: %v", hash, err)
		}
		ctx, cancel = context.WithCancel(background)
		go cancel()
		if err := h.CheckKey(ctx, key); err != context.Canceled {
			t.Errorf("%s: CheckKey: %v", hash, err)
		}
	}
}

// TestCancelSealing: nothing of a header changes that was not sealed.
func TestCancelSealing(t *testing.T) {
	h, _, key := manySlots(t, "sha1", 1000)
	before := *h
	ctx, cancel := context.WithCancel(background)
	go cancel()
	if sealed, err := h.SealSlot(ctx, 1, key, nil, forEver); sealed != nil || err != context.Canceled {
		t.Errorf("SealSlot: %v", err)
	}
	if *h != before {
		t.Error("the header has changed")
	}
	if err := h.SetDigest(ctx, key, forEver); err != context.Canceled {
		t.Errorf("SetDigest: %v", err)
	}
}
