package volume

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/golden"
	"serpcrypt/volume/luks2"
)

// TestConvertThereAndBack: with any number of keys that have room to move, all
// open the same slots, and the payload is not touched.
func TestConvertThereAndBack(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		passphrases := [][]byte{oldPassphrase, otherPassphrase}
		for slot := 2; slot < 6; slot++ {
			passphrase := fmt.Append(nil, "number ", slot)
			if _, err := AddKey(background, s, c.keyFromSlot(AnySlot), passphrase, slot, quickKey); err != nil {
				t.Fatal(err)
			}
			passphrases = append(passphrases, passphrase)
		}
		uuid := headerOf(t, s).UUID
		for _, format := range []string{otherFormat(c.format), c.format, otherFormat(c.format)} {
			if err := Convert(background, s, format); err != nil {
				t.Fatal(err)
			}
			h := headerOf(t, s)
			if h.Type != format || h.UUID != uuid {
				t.Errorf("it is %s with UUID %s, want %s and %s", h.Type, h.UUID, format, uuid)
			}
			if err := verifyHeaderOf(t, s); err != nil {
				t.Error(err)
			}
			for slot, passphrase := range passphrases {
				key := keyOf(t, s, passphrase)
				if key.Slot != slot || !bytes.Equal(key.Bytes.Bytes(), c.volumeKey) {
					t.Errorf("%s: %q opens slot %d, want %d, or another key", format, passphrase, key.Slot, slot)
				}
			}
			c.samePayload(t, s, format)
			var found int
			for slot := range h.Slots {
				if h.Slots[slot].State == SlotEnabled {
					found++
				}
			}
			if found != len(passphrases) {
				t.Errorf("%s: %d slots in use, want %d", format, found, len(passphrases))
			}
		}
	})
}

func TestConvertDetached(t *testing.T) {
	for _, p := range []Params{quick, quick2} {
		p.PayloadOffset, p.Detached = 0, true
		size, err := HeaderSize(p)
		if err != nil {
			t.Fatal(err)
		}
		at := Stores{newStore(size), newStore(4096)}
		formatAt(t, at, p)
		for _, format := range []string{otherFormat(p.Type), p.Type} {
			if err := Convert(background, at.Header, format); err != nil {
				t.Fatal(err)
			}
			key, err := Unlock(background, at, passphrase, AnySlot, nil)
			if err != nil {
				t.Fatal(err)
			}
			v, err := Open(at, key, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if v.Size() != 4096 {
				t.Errorf("the volume has %d bytes", v.Size())
			}
			v.Close()
			key.Close()
		}
	}
}

func TestConvertGolden(t *testing.T) {
	for _, image := range append(golden.Small(t), golden.LUKS2(t)...) {
		t.Run(image.Name, func(t *testing.T) {
			s := faultstore.New(image.Unpack(t))
			before := s.Bytes()
			var refused *ConvertError
			err := Convert(background, s, otherFormat(headerOf(t, s).Type))
			if errors.As(err, &refused) {
				if !strings.HasPrefix(image.Name, "l2-") {
					t.Errorf("refused: %v", err)
				}
				if !bytes.Equal(s.Bytes(), before) {
					t.Error("something was written")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for slot, passphrase := range image.Passphrases {
				if key := keyOf(t, s, passphrase); key.Slot != slot || !bytes.Equal(key.Bytes.Bytes(), image.VolumeKey) {
					t.Errorf("slot %d opens, want %d, or with another key", key.Slot, slot)
				}
			}
			v, err := Open(Attached(s), keyOf(t, s, anyOf(image.Passphrases)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			if got := sha256Hex(readAll(t, v, v.Size())); got != image.PlaintextSHA256 {
				t.Errorf("plaintext %s, want %s", got, image.PlaintextSHA256)
			}
		})
	}
}

func anyOf(passphrases map[int][]byte) []byte {
	return passphrases[slices.Min(slices.Collect(maps.Keys(passphrases)))]
}

// TestConvertRefuses: what the other format has no way to say, or no room for.
func TestConvertRefuses(t *testing.T) {
	edited := func(p Params, edit func(h *luks2.Header)) func(t *testing.T) *faultstore.Store {
		return func(t *testing.T) *faultstore.Store {
			s := format(t, p, 8*512)
			found, err := luks2.Read(s, 64<<20)
			if err != nil {
				t.Fatal(err)
			}
			edit(found.Header)
			if err := found.Header.Save(s); err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	with := func(edit func(p *Params)) func(t *testing.T) *faultstore.Store {
		p := quick2
		edit(&p)
		return edited(p, func(*luks2.Header) {})
	}
	full := func(p Params) func(t *testing.T) *faultstore.Store {
		return func(t *testing.T) *faultstore.Store {
			s := format(t, p, 8*512)
			key := unlocked(t, s)
			for slot := 1; slot < 8; slot++ {
				if _, err := AddKey(background, s, key, newPassphrase, slot, quickKey); err != nil {
					t.Fatal(err)
				}
			}
			return s
		}
	}
	for _, c := range []struct {
		name  string
		store func(t *testing.T) *faultstore.Store
		want  string
	}{
		{"LUKS1 with all slots in use", full(quick), "remove a key first"},
		{"LUKS2 with eight slots in use", full(quick2), "remove a key first"},
		{"sectors", with(func(p *Params) { p.SectorSize = 4096 }), "4096"},
		{"slot 8", with(func(p *Params) { p.Slot = 8 }), "slots 0 to 7"},
		{"argon2", with(func(p *Params) { p.KDF, p.Argon2 = Argon2id, Argon2Cost{4, 64, 1} }), "argon2id"},
		{"label", with(func(p *Params) { p.Label = "music" }), "label"},
		{"token", edited(quick2, func(h *luks2.Header) {
			h.Tokens[3] = &luks2.Token{Type: "some", Keyslots: []int{0}}
		}), "tokens"},
		{"priority", edited(quick2, func(h *luks2.Header) {
			prefer := luks2.PriorityPrefer
			h.Keyslots[0].Priority = &prefer
		}), "priority"},
		{"fixed size", edited(quick2, func(h *luks2.Header) { h.Segments[0].Size = 1024 }), "fixed size"},
		{"IV", edited(quick2, func(h *luks2.Header) { h.Segments[0].IVTweak = 8 }), "numbered"},
		{"flags", edited(quick2, func(h *luks2.Header) { h.Config.Flags = []string{"allow-discards"} }), "allow-discards"},
		{"stripes under another hash", edited(quick2, func(h *luks2.Header) { h.Keyslots[0].AF.Hash = "sha256" }), "hash"},
		{"slot under another cipher", edited(quick2, func(h *luks2.Header) {
			h.Keyslots[0].Area.Encryption = "serpent-ecb"
		}), "cipher"},
		{"small area for key slots", edited(quick2, func(h *luks2.Header) {
			h.Keyslots[7] = h.Keyslots[0]
			delete(h.Keyslots, 0)
			h.Digests[0].Keyslots = []int{7}
			h.Config.KeyslotsSize = 256 << 10
		}), "behind the area"},
		{"one copy damaged", func(t *testing.T) *faultstore.Store {
			s := format(t, quick2, 8*512)
			putField(t, s, luks2.MinSize, 0)
			return s
		}, "repair"},
		{"damaged slot of LUKS1", func(t *testing.T) *faultstore.Store {
			s := format(t, quick, 8*512)
			putSlotField(t, s, 5, atActive, 7)
			return s
		}, "repair"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.store(t)
			before := s.Bytes()
			var refused *ConvertError
			if err := Convert(background, s, otherFormat(headerOf(t, s).Type)); !errors.As(err, &refused) || !strings.Contains(refused.Reason, c.want) {
				t.Errorf("got %v, want a ConvertError with %q", err, c.want)
			}
			if !bytes.Equal(s.Bytes(), before) {
				t.Error("something was written")
			}
		})
	}
	s := format(t, quick, 512)
	if err := Convert(background, s, TypeLUKS1); !errors.As(err, new(*ConvertError)) {
		t.Errorf("to what it is: %v", err)
	}
	if err := Convert(background, s, "LUKS3"); !errors.As(err, new(*ParamError)) {
		t.Errorf("to something unknown: %v", err)
	}
}

// TestPlanMoves: whatever lies where, no move is to where something lies.
func TestPlanMoves(t *testing.T) {
	random := newRandom(t)
	const unit, size = luks2.AreaAlignment, 3 * luks2.AreaAlignment
	planned := 0
	for range 300 {
		area := byteRange{8 * unit, int64(8+12+random.IntN(40)) * unit}
		places, targets := map[int]byteRange{}, map[int]byteRange{}
		for slot := range 1 + random.IntN(6) {
			from := area.from + int64(random.IntN(int(area.to-area.from-size)/unit+1))*unit
			target := int64(slot)*size + 9*unit
			r, to := byteRange{from, from + size}, byteRange{target, target + size}
			if !overlaps(r, places) && to.to <= area.to {
				places[slot], targets[slot] = r, to
			}
		}
		moves, possible := planMoves(places, targets, area)
		if !possible {
			continue
		}
		planned++
		for _, m := range moves {
			if overlaps(m.to, places) || m.to.from < area.from || m.to.to > area.to {
				t.Fatalf("%v to %v while there is %v", m.slot, m.to, places)
			}
			places[m.slot] = m.to
		}
		if !maps.Equal(places, targets) {
			t.Fatalf("all lies at %v, want %v", places, targets)
		}
	}
	if planned < 100 {
		t.Errorf("only %d of 300 were possible", planned)
	}
}
