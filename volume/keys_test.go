package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks"
	"serpcrypt/volume/luks1"
)

// forEachFormat gives the test a container whose slots 0 and 1 open with
// oldPassphrase and otherPassphrase.
func forEachFormat(t *testing.T, test func(t *testing.T, c *subject, s *faultstore.Store)) {
	for _, c := range subjects(t) {
		t.Run(c.format, func(t *testing.T) { test(t, c, c.copy()) })
	}
}

// unchanged checks that an operation which was refused wrote nothing.
func unchanged(t *testing.T, c *subject, s *faultstore.Store) {
	t.Helper()
	if !bytes.Equal(s.Bytes(), c.whole.Bytes()) {
		t.Error("something was written")
	}
}

func TestAddKey(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		key := keyOf(t, s, oldPassphrase)
		slots := len(headerOf(t, s).Slots)
		for slot := 2; slot < slots; slot++ {
			passphrase := fmt.Append(nil, "number ", slot)
			got, err := AddKey(background, s, key, passphrase, AnySlot, quickKey)
			if c.format == TypeLUKS2 && errors.Is(err, ErrNoFreeSlot) && slot > 7 {
				break // the areas are full
			}
			if got != slot || err != nil {
				t.Fatalf("slot %d, %v; want %d", got, err, slot)
			}
			if key := keyOf(t, s, passphrase); key.Slot != slot {
				t.Errorf("%q opens slot %d, want %d", passphrase, key.Slot, slot)
			}
		}
		full := s.Bytes()
		if slot, err := AddKey(background, s, key, newPassphrase, AnySlot, quickKey); slot != luks.NoSlot || !errors.Is(err, ErrNoFreeSlot) {
			t.Errorf("all slots in use: %d, %v", slot, err)
		}
		if !bytes.Equal(s.Bytes(), full) {
			t.Error("something was written")
		}
		c.samePayload(t, s, "at the end")
	})
}

func TestAddKeyRefuses(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		right := keyOf(t, s, oldPassphrase)
		wrong := &Key{Bytes: secretCopy(bytes.Repeat([]byte{7}, len(c.volumeKey))), Slot: AnySlot}
		short := &Key{Bytes: secretCopy(c.volumeKey[:8]), Slot: AnySlot}
		isParam := func(err error) bool { return errors.As(err, new(*ParamError)) }
		is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
		for _, refused := range []struct {
			name string
			key  *Key
			slot int
			p    KeyParams
			want func(error) bool
		}{
			{"slot in use", right, 1, quickKey, is(ErrSlotUsed)},
			{"no such slot", right, 32, quickKey, isParam},
			{"negative slot", right, -2, quickKey, isParam},
			{"another volume key", wrong, AnySlot, quickKey, is(ErrVolumeKey)},
			{"part of the volume key", short, AnySlot, quickKey, is(ErrVolumeKey)},
			{"few iterations", right, AnySlot, KeyParams{Iterations: 999}, isParam},
			{"unknown function", right, AnySlot, KeyParams{KDF: "scrypt", Iterations: 1000}, isParam},
		} {
			slot, err := AddKey(background, s, refused.key, newPassphrase, refused.slot, refused.p)
			if slot != luks.NoSlot || !refused.want(err) {
				t.Errorf("%s: %d, %v", refused.name, slot, err)
			}
			unchanged(t, c, s)
		}
		ctx, cancel := context.WithCancel(background)
		cancel()
		if _, err := AddKey(ctx, s, right, newPassphrase, AnySlot, quickKey); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		unchanged(t, c, s)
	})
}

func TestLUKS1KeyParams(t *testing.T) {
	s := format(t, quick, 512)
	key := unlocked(t, s)
	for _, p := range []KeyParams{
		{KDF: Argon2id, Argon2: Argon2Cost{4, 65536, 1}},
		{KDF: PBKDF2, Hash: "sha256", Iterations: 1000},
	} {
		if _, err := AddKey(background, s, key, newPassphrase, AnySlot, p); !errors.As(err, new(*ParamError)) {
			t.Errorf("%+v: %v, want a ParamError", p, err)
		}
	}
	for _, p := range []KeyParams{{Iterations: 1000}, {KDF: PBKDF2, Hash: "SHA1", Iterations: 1001}} {
		slot, err := AddKey(background, s, key, newPassphrase, AnySlot, p)
		if err != nil || headerOf(t, s).Slots[slot].Iterations != p.Iterations {
			t.Errorf("%+v: slot %d, %v", p, slot, err)
		}
	}
}

func TestChangeKey(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		old := keyOf(t, s, oldPassphrase)
		slot, err := ChangeKey(background, s, old, newPassphrase, quickKey)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{TypeLUKS1: 2, TypeLUKS2: 0}[c.format]; slot != want || keyOf(t, s, newPassphrase).Slot != want {
			t.Errorf("the key is in slot %d, want %d", slot, want)
		}
		opensWith(newPassphrase, otherPassphrase)(t, c, s)
		if c.format == TypeLUKS1 && !isWiped(t, c, s, 0) {
			t.Error("the old key's material is still there")
		}
		s = c.copy()
		for _, slot := range []int{AnySlot, 2, 7, 99} {
			if got, err := ChangeKey(background, s, &Key{old.Bytes, slot}, newPassphrase, quickKey); got != luks.NoSlot || !errors.Is(err, ErrNoKeySlot) {
				t.Errorf("a key out of slot %d: %d, %v; want ErrNoKeySlot", slot, got, err)
			}
		}
		unchanged(t, c, s)
	})
}

func TestChangeKeyWithoutRoom(t *testing.T) {
	s := format(t, quick, 512)
	key := unlocked(t, s)
	for range 7 {
		if _, err := AddKey(background, s, key, otherPassphrase, AnySlot, quickKey); err != nil {
			t.Fatal(err)
		}
	}
	before := s.Bytes()
	if _, err := ChangeKey(background, s, key, newPassphrase, quickKey); !errors.Is(err, ErrNoFreeSlot) {
		t.Errorf("got %v, want ErrNoFreeSlot", err)
	}
	if !bytes.Equal(s.Bytes(), before) {
		t.Error("something was written")
	}
}

// isWiped reports whether the place of a slot's material holds something else
// now.
func isWiped(t *testing.T, c *subject, s *faultstore.Store, slot int) bool {
	t.Helper()
	place := headerOf(t, c.whole).Slots[slot]
	at := func(s *faultstore.Store) []byte {
		return s.Bytes()[place.MaterialOffset : place.MaterialOffset+place.MaterialSize]
	}
	before, after := at(c.whole), at(s)
	same := 0
	for i := 0; i+16 <= len(before); i += 16 {
		if bytes.Equal(before[i:i+16], after[i:i+16]) {
			same++
		}
	}
	return same == 0
}

func headerOf(t *testing.T, s Store) *Header {
	t.Helper()
	h, err := ReadHeader(Attached(s))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestRemoveKey(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		for _, slot := range []int{AnySlot, 2, 7, 32} {
			if err := RemoveKey(background, s, slot, true); !errors.Is(err, ErrNoKeySlot) {
				t.Errorf("slot %d: %v, want ErrNoKeySlot", slot, err)
			}
		}
		unchanged(t, c, s)
		if err := RemoveKey(background, s, 0, false); err != nil {
			t.Fatal(err)
		}
		opensWith(otherPassphrase)(t, c, s)
		if !isWiped(t, c, s, 0) || isWiped(t, c, s, 1) {
			t.Error("the material of the wrong slot is wiped, or none")
		}
		if slot := headerOf(t, s).Slots[0]; slot.State != SlotDisabled || slot.Iterations != 0 || len(bytes.Trim(slot.Salt, "\x00")) != 0 {
			t.Errorf("slot 0 is %+v", slot)
		}
		before := s.Bytes()
		if err := RemoveKey(background, s, 1, false); !errors.Is(err, ErrLastKey) {
			t.Errorf("the last one: %v, want ErrLastKey", err)
		}
		if !bytes.Equal(s.Bytes(), before) {
			t.Error("something was written")
		}
		if err := RemoveKey(background, s, 1, true); err != nil {
			t.Fatal(err)
		}
		opensWith()(t, c, s)
		// The volume key still opens it, and makes a new slot.
		if _, err := AddKey(background, s, c.keyFromSlot(AnySlot), newPassphrase, AnySlot, quickKey); err != nil {
			t.Fatal(err)
		}
		opensWith(newPassphrase)(t, c, s)
	})
}

func TestErase(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		for range 2 { // an erased container can be erased
			if err := Erase(background, s); err != nil {
				t.Fatal(err)
			}
			opensWith()(t, c, s)
			for slot := range 2 {
				if !isWiped(t, c, s, slot) {
					t.Errorf("the material of slot %d is still there", slot)
				}
			}
		}
	})
}

// TestEraseDamagedLUKS1: whatever is wrong in the header, key material whose place
// is sure is destroyed, and nothing is where it is not.
func TestEraseDamagedLUKS1(t *testing.T) {
	c := subjects(t)[0]
	const (
		slot0 = atSlots
		slot1 = atSlots + slotLength
		slot5 = atSlots + 5*slotLength
	)
	for _, damage := range []struct {
		name   string
		fields map[int64]uint32
		unsure string // the field that keeps it from being erased
	}{
		{"cipher name", map[int64]uint32{8: 0x61626364}, ""},
		{"cipher mode", map[int64]uint32{40: 0x61626364}, ""},
		{"hash", map[int64]uint32{72: 0xFFFFFFFF}, ""},
		{"payload sector behind the end", map[int64]uint32{atPayloadSector: 1 << 31}, ""},
		{"key bytes of no cipher", map[int64]uint32{108: 13}, ""},
		{"cipher name and key bytes", map[int64]uint32{8: 0, 108: 1}, ""},
		{"digest iterations", map[int64]uint32{164: 0}, ""},
		{"UUID", map[int64]uint32{168: 0xFFFFFFFF}, ""},
		{"state of a slot in use", map[int64]uint32{slot1 + atActive: 7}, ""},
		{"state of a free slot", map[int64]uint32{slot5 + atActive: 7}, ""},
		{"iterations", map[int64]uint32{slot0 + atIterations: 0}, ""},
		{"stripes", map[int64]uint32{slot0 + atStripes: 1}, ""},
		{"several", map[int64]uint32{8: 0xFFFFFFFF, 72: 0, slot0 + atActive: 0, slot1 + atActive: 7, slot1 + atStripes: 0, slot5 + atIterations: 0}, ""},
		{"place in the header", map[int64]uint32{slot1 + atMaterial: 1}, "material sector"},
		{"place of another", map[int64]uint32{slot5 + atMaterial: 8}, "material sector"},
		{"place in the payload", map[int64]uint32{slot1 + atMaterial: 1032}, "material sector"},
		{"payload in the slots", map[int64]uint32{atPayloadSector: 600}, "material sector"},
		{"no key bytes", map[int64]uint32{108: 0}, "key bytes"},
		{"key bytes that fit nowhere", map[int64]uint32{108: 1 << 30}, "key bytes"},
		{"key bytes too many for the slots", map[int64]uint32{108: 64}, "material sector"},
	} {
		t.Run(damage.name, func(t *testing.T) {
			s := c.copy()
			for at, value := range damage.fields {
				putField(t, s, at, value)
			}
			before := s.Bytes()
			err := Erase(background, s)
			if damage.unsure != "" {
				refusedFor(t, "erase", err, damage.unsure, s, before)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			h, err := luks1.Parse(s.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			for slot := range h.Slots {
				if h.Slots[slot].Active != luks1.SlotDisabled {
					t.Errorf("key slot %d is in use still", slot)
				}
			}
			// The header as it was before opens nothing, as no material is whole.
			restored := s.Bytes()
			copy(restored, c.whole.Bytes()[:luks1.HeaderSize])
			opensWith()(t, c, faultstore.New(restored))
			if end := c.payloadOffset; !bytes.Equal(s.Bytes()[end:], before[end:]) {
				t.Error("the payload has changed")
			}
			if !bytes.Equal(s.Bytes()[:atSlots], before[:atSlots]) {
				t.Error("the damaged fields have changed")
			}
		})
	}
	// Of a container that is cut off, what is there goes.
	whole := c.whole.Bytes()
	for _, size := range []int64{1024, 4096 + 512, c.payloadOffset - 512} {
		s := faultstore.New(bytes.Clone(whole[:size]))
		if err := Erase(background, s); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		opensWith()(t, c, faultstore.New(append(append(bytes.Clone(whole[:luks1.HeaderSize]), s.Bytes()[luks1.HeaderSize:]...), make([]byte, int64(len(whole))-size)...)))
	}
	s := faultstore.New(bytes.Clone(whole[:1023]))
	refusedFor(t, "half a header", Erase(background, s), "header", s, whole[:1023])
}

func TestConfigure(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		bad, random := "not-a-uuid", ""
		if err := Configure(background, s, Texts{UUID: &bad}); !errors.As(err, new(*ParamError)) {
			t.Errorf("got %v, want a ParamError", err)
		}
		unchanged(t, c, s)
		before := headerOf(t, s).UUID
		if err := Configure(background, s, Texts{UUID: &random}); err != nil || headerOf(t, s).UUID == before {
			t.Errorf("no new UUID (%v)", err)
		}
		label := "music"
		err := Configure(background, s, Texts{Label: &label})
		if c.format == TypeLUKS1 {
			if !errors.As(err, new(*ParamError)) {
				t.Errorf("got %v, want a ParamError", err)
			}
			return
		}
		if h := headerOf(t, s); err != nil || h.Label != label {
			t.Errorf("the label is %q (%v)", h.Label, err)
		}
	})
}
