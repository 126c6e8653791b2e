package luks1

import (
	"errors"
	"strings"
	"testing"

	"serpcrypt/cipher/modes"
	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/hashes"
	"serpcrypt/volume/luks"
)

func TestNewGeometry(t *testing.T) {
	// Slot sectors, step, end of the last slot and payload as cryptsetup has them.
	for _, c := range []struct{ keyBytes, step, end, payload int64 }{
		{16, 128, 1029, 2048},
		{24, 192, 1540, 2048},
		{32, 256, 2050, 4096},
		{48, 376, 3015, 4096},
		{64, 504, 4036, 4096},
	} {
		spec := "serpent-cbc-plain64"
		if c.keyBytes > 32 {
			spec = "serpent-xts-plain64"
		}
		h, err := New(Params{Spec: spec, KeyBytes: int(c.keyBytes), Hash: "sha1"})
		if err != nil {
			t.Fatal(err)
		}
		if got := h.EndOfSlots() / SectorSize; got != c.end {
			t.Errorf("key of %d bytes: the slots end at sector %d, want %d", c.keyBytes, got, c.end)
		}
		if h.PayloadSector != uint32(c.payload) {
			t.Errorf("key of %d bytes: payload at sector %d, want %d", c.keyBytes, h.PayloadSector, c.payload)
		}
		for i := range h.Slots {
			if want := uint32(8 + int64(i)*c.step); h.Slots[i].MaterialSector != want {
				t.Errorf("key of %d bytes: slot %d at sector %d, want %d", c.keyBytes, i, h.Slots[i].MaterialSector, want)
			}
		}
	}
}

func TestNewUUIDAndOffset(t *testing.T) {
	p := Params{Spec: "serpent-xts-plain64", KeyBytes: 64, Hash: "SHA1"}
	a, errA := New(p)
	b, errB := New(p)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if a.UUID == b.UUID || a.UUID.String()[14] != '4' {
		t.Errorf("UUIDs %s and %s, want two random ones", a.UUID, b.UUID)
	}
	if got := a.Hash.String(); got != "sha1" {
		t.Errorf("hash %q is not written in lower case", got)
	}
	p.UUID, p.PayloadOffset = "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", 4040*512
	c, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.UUID.String(), strings.ToLower(p.UUID); got != want {
		t.Errorf("UUID %q, want %q", got, want)
	}
	if c.PayloadOffset() != p.PayloadOffset {
		t.Errorf("payload at %d, want %d", c.PayloadOffset(), p.PayloadOffset)
	}
}

func TestNewRefuses(t *testing.T) {
	good := Params{Spec: "serpent-xts-plain64", KeyBytes: 64, Hash: "sha1"}
	is := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	isSpec, isHash, isParam := is(new(*modes.SpecError)), is(new(*hashes.UnknownError)), is(new(*luks.ParamError))
	for _, c := range []struct {
		name  string
		edit  func(p *Params)
		typed func(error) bool
	}{
		{"unknown cipher", func(p *Params) { p.Spec = "twofish-xts-plain64" }, isSpec},
		{"no mode", func(p *Params) { p.Spec = "serpent" }, isSpec},
		{"key size", func(p *Params) { p.KeyBytes = 63 }, isSpec},
		{"no key", func(p *Params) { p.KeyBytes = 0 }, isSpec},
		{"negative key size", func(p *Params) { p.KeyBytes = -64 }, isSpec},
		{"hash", func(p *Params) { p.Hash = "md5" }, isHash},
		{"UUID", func(p *Params) { p.UUID = "me" }, isParam},
		{"payload over the slots", func(p *Params) { p.PayloadOffset = 4032 * 512 }, isParam},
		{"payload not aligned", func(p *Params) { p.PayloadOffset = 4097 * 512 }, isParam},
		{"negative payload", func(p *Params) { p.PayloadOffset = -4096 }, isParam},
		{"payload beyond the field", func(p *Params) { p.PayloadOffset = 1 << 41 }, isParam},
	} {
		p := good
		c.edit(&p)
		if _, err := New(p); !c.typed(err) {
			t.Errorf("%s: got %#v", c.name, err)
		}
	}
	h, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, iterations := range []int{-1, 0, 999} {
		if err := h.SetDigest(background, make([]byte, 64), iterations); !isParam(err) {
			t.Errorf("digest of %d iterations: got %v", iterations, err)
		}
		if err := writeSlot(h, faultstore.New(nil), 0, make([]byte, 64), nil, iterations); !isParam(err) {
			t.Errorf("slot of %d iterations: got %v", iterations, err)
		}
	}
}
