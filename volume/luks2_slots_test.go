package volume

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks2"
)

// luks2Edited returns a container with two keys whose header has been edited.
func luks2Edited(t *testing.T, edit func(h *luks2.Header)) *faultstore.Store {
	t.Helper()
	p := quick2
	p.Slot = 2
	s := newSubject(t, p).copy()
	found, err := luks2.Read(s, int64(len(s.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	edit(found.Header)
	if err := found.Header.Save(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestUnboundSlot: another key than the volume's is of no use to it.
func TestUnboundSlot(t *testing.T) {
	s := luks2Edited(t, func(h *luks2.Header) {
		d := *h.Digests[0]
		d.Keyslots, d.Segments = []int{1}, nil
		h.Digests[0].Keyslots = []int{0}
		h.Digests[1] = &d
		h.Keyslots[1].KeySize = 16 // the area that follows is none of its own
	})
	zeros := make([]byte, 64*4000)
	place := headerOf(t, s).Slots[1]
	if _, err := s.WriteAt(zeros, place.MaterialOffset+16*4000); err != nil {
		t.Fatal(err)
	}
	if place.State != SlotUnbound {
		t.Errorf("it is %s", place.State)
	}
	if err := RemoveKey(background, s, 0, false); !errors.Is(err, ErrLastKey) {
		t.Errorf("to remove the key of the volume: %v, want ErrLastKey", err)
	}
	r, err := Verify(background, Attached(s), keyOf(t, s, oldPassphrase), Options{}, nil)
	if err != nil || r.Err() != nil || !slices.Equal(r.WholeSlots, []int{0, 1}) {
		t.Errorf("Verify: %v, %+v", err, r)
	}
	if _, err := Unlock(background, Attached(s), otherPassphrase, AnySlot, nil); !errors.Is(err, ErrPassphrase) {
		t.Errorf("to unlock by its passphrase: %v, want ErrPassphrase", err)
	}
	if err := RemoveKey(background, s, 1, false); err != nil {
		t.Error(err)
	}
}

// TestSlowArgon2: it is announced and holds up no other slot, although it is to be
// tried first.
func TestSlowArgon2(t *testing.T) {
	prefer := int(PriorityPrefer)
	s := luks2Edited(t, func(h *luks2.Header) {
		h.Keyslots[0].KDF = luks2.KDF{Type: luks2.KDFArgon2id, Salt: h.Keyslots[0].KDF.Salt, Time: 1<<31 - 1, Memory: 1024, CPUs: 1}
		h.Keyslots[0].Priority = &prefer
	})
	slow := func(slot int, about time.Duration) { t.Errorf("slot %d takes %v", slot, about) }
	key, err := Unlock(background, Attached(s), otherPassphrase, AnySlot, slow)
	if err != nil {
		t.Fatal(err)
	}
	key.Close()

	ctx, cancel := context.WithCancel(background)
	told := 0
	_, err = Unlock(ctx, Attached(s), newPassphrase, AnySlot, func(slot int, about time.Duration) {
		if told++; slot != 0 || about < time.Hour {
			t.Errorf("slot %d takes %v", slot, about)
		}
		cancel()
	})
	if err != context.Canceled || told != 1 {
		t.Errorf("got %v, told of %d slots", err, told)
	}
}
