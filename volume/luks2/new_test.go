package luks2

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"serpcrypt/cipher/modes"
	"serpcrypt/volume/luks"
)

func TestNewPlaces(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name         string
		p            Params
		slots, begin int64 // size of the keyslots area, and where the data begin
	}{
		{"as cryptsetup", Params{}, 16744448, 16 * mib},
		{"detached", Params{Detached: true, StoreSize: mib}, 16744448, 0},
		{"64 MiB", Params{StoreSize: 64 * mib}, 16744448, 16 * mib},
		{"under 64 MiB", Params{StoreSize: 64*mib - 1}, 2064384, 2 * mib},
		{"under 64 MiB, 32-byte key", Params{StoreSize: 4 * mib, KeyBytes: 32}, 2064384, 2 * mib},
		{"data elsewhere", Params{DataOffset: 3 * mib}, 3*mib - 32768, 3 * mib},
		{"data far away", Params{DataOffset: 1 << 40}, 128 * mib, 1 << 40},
		{"data of a detached header elsewhere", Params{DataOffset: 32 * mib, Detached: true}, 32*mib - 32768, 32 * mib},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.p
			p.Spec, p.SectorSize = "Serpent-XTS-plain64", 512
			if p.KeyBytes == 0 {
				p.KeyBytes = 64
			}
			h, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			if h.Size != MinSize || h.Config.KeyslotsSize != c.slots || h.Segments[0].Offset != c.begin {
				t.Errorf("got %d, %d, %d; want %d, %d, %d", h.Size, h.Config.KeyslotsSize, h.Segments[0].Offset, MinSize, c.slots, c.begin)
			}
			if _, end := h.KeyslotsArea(); !p.Detached && end > c.begin {
				t.Errorf("the area ends at %d, the data begin at %d", end, c.begin)
			}
			if h.Segments[0].Encryption != "serpent-xts-plain64" || uuid.Validate(h.UUID) != nil {
				t.Errorf("got %+v", h)
			}
			// All that is missing is a digest.
			faults := h.Faults(1<<41, luks.UnknownSize)
			if len(faults) != 1 || faults[0].Field != "digests" {
				t.Errorf("got %v", faults)
			}
			for slot := range 8 {
				offset, err := h.FreeArea(AreaSize(p.KeyBytes))
				if err != nil {
					t.Fatalf("slot %d: %v", slot, err)
				}
				h.Keyslots[slot] = &Keyslot{Area: Area{Offset: offset, Size: AreaSize(p.KeyBytes)}}
			}
		})
	}
}

func TestNewErrors(t *testing.T) {
	good := Params{Spec: "serpent-xts-plain64", KeyBytes: 64, SectorSize: 512}
	for _, c := range []struct {
		name, param string
		edit        func(p *Params)
	}{
		{"sector size 0", "sector size", func(p *Params) { p.SectorSize = 0 }},
		{"sector size 1000", "sector size", func(p *Params) { p.SectorSize = 1000 }},
		{"sector size 8192", "sector size", func(p *Params) { p.SectorSize = 8192 }},
		{"label of 48 bytes", "label", func(p *Params) { p.Label = strings.Repeat("ö", 24) }},
		{"label of two lines", "label", func(p *Params) { p.Label = "a\nb" }},
		{"label no UTF-8", "label", func(p *Params) { p.Label = "\xFF" }},
		{"subsystem of 48 bytes", "subsystem", func(p *Params) { p.Subsystem = strings.Repeat("s", 48) }},
		{"UUID", "UUID", func(p *Params) { p.UUID = "1" }},
		{"data offset not aligned", "data offset", func(p *Params) { p.DataOffset = 16<<20 + 512 }},
		{"data offset in the header", "data offset", func(p *Params) { p.DataOffset = 4096 }},
		{"data offset negative", "data offset", func(p *Params) { p.DataOffset = -1 << 20 }},
		{"data offset in the keyslots area", "data offset", func(p *Params) { p.DataOffset = 2*MinSize + 258048 - 4096 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := good
			c.edit(&p)
			h, err := New(p)
			var param *luks.ParamError
			if h != nil || !errors.As(err, &param) || param.Param != c.param {
				t.Errorf("got %v, %v; want an error about %s", h, err, c.param)
			}
		})
	}
	for name, edit := range map[string]func(p *Params){
		"cipher":   func(p *Params) { p.Spec = "rot13-ecb" },
		"key size": func(p *Params) { p.KeyBytes = 20 },
	} {
		p := good
		edit(&p)
		var spec *modes.SpecError
		if _, err := New(p); !errors.As(err, &spec) {
			t.Errorf("%s: %v", name, err)
		}
	}
	longest := good
	longest.Label, longest.Subsystem = strings.Repeat("ö", 23)+"x", strings.Repeat("s", 47)
	longest.UUID = "{6BA7B810-9DAD-11D1-80B4-00C04FD430C8}"
	h, err := New(longest)
	if err != nil || h.Label != longest.Label || h.UUID != "6ba7b810-9dad-11d1-80b4-00c04fd430c8" {
		t.Errorf("got %+v, %v", h, err)
	}
}
