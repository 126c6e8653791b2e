package volume

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/hashes"
	"serpcrypt/kdf"
)

func TestFormatLUKS2(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name               string
		p                  Params
		size               int64
		offset, sectorSize int64
	}{
		{"default, small", Params{}, 8 * mib, 2 * mib, 4096},
		{"default, not whole sectors of 4096", Params{}, 8*mib + 512, 2 * mib, 512},
		{"default, big", Params{}, 64 * mib, 16 * mib, 4096},
		{"256-bit key", Params{KeyBits: 256}, 8 * mib, 2 * mib, 4096},
		{"slot 31, texts", Params{Slot: 31, Label: "music", Subsystem: "home", UUID: uuidAfter}, 8 * mib, 2 * mib, 4096},
		{"sectors of 1024", Params{SectorSize: 1024, Hash: "SHA256"}, 8*mib + 3*1024, 2 * mib, 1024},
		{"offset", Params{PayloadOffset: 5 * mib}, 8 * mib, 5 * mib, 4096},
		{"argon2id", Params{KDF: Argon2id, Argon2: Argon2Cost{4, 64, 1}}, 8 * mib, 2 * mib, 4096},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.p.Iterations = 1000; c.p.KDF == Argon2id {
				c.p.Iterations = 0
			}
			s := newStore(c.size)
			f, err := Format(background, Attached(s), passphrase, c.p)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := ReadHeader(Attached(s)); !isFormatError(err) {
				t.Errorf("before Commit it is a container already (%v)", err)
			}
			v, err := f.Open(Options{})
			if err != nil {
				t.Fatal(err)
			}
			plain := randomBytes(newRandom(t), 1<<20)
			last := v.Size() - int64(len(plain))
			if _, err := v.WriteAt(plain, last); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(v.Close(), f.Commit()); err != nil {
				t.Fatal(err)
			}
			key := unlocked(t, s)
			if key.Slot != c.p.Slot {
				t.Errorf("slot %d, want %d", key.Slot, c.p.Slot)
			}
			v = open(t, s, Options{Kernel: serpent.Generic})
			if v.Size() != c.size-c.offset || !bytes.Equal(readAll(t, io.NewSectionReader(v, last, v.Size()), int64(len(plain))), plain) {
				t.Errorf("opened again, the volume has changed, or its %d bytes are not %d", v.Size(), c.size-c.offset)
			}
			h := headerOf(t, s)
			if promised := f.Header(); promised.KeyBytes != h.KeyBytes || !reflect.DeepEqual(promised.Slots, h.Slots) {
				t.Errorf("header is %+v, want %+v", h, promised)
			}
			if h.Type != TypeLUKS2 || h.PayloadOffset != c.offset || int64(h.SectorSize) != c.sectorSize || h.Label != c.p.Label || h.Subsystem != c.p.Subsystem ||
				c.p.UUID != "" && h.UUID != c.p.UUID || len(h.Warnings) > 0 {
				t.Errorf("header is %+v, want %+v", h, c)
			}
			want := c.p.withDefaults()
			if slot := h.Slots[c.p.Slot]; slot.KDF != want.KDF || slot.Argon2 != want.Argon2 || slot.Iterations != c.p.Iterations || h.Hash != strings.ToLower(want.Hash) {
				t.Errorf("slot is %+v, want %+v", slot, want)
			}
			r := verify(t, s)
			if r.Err() != nil || r.Bytes != v.Size() {
				t.Errorf("Verify: %+v", r)
			}
		})
	}
}

func TestFormatLUKS2Refuses(t *testing.T) {
	isParam := func(err error) bool { return errors.As(err, new(*ParamError)) }
	for _, c := range []struct {
		name  string
		edit  func(p *Params)
		typed func(error) bool
	}{
		{"type", func(p *Params) { p.Type = "LUKS3" }, isParam},
		{"hash", func(p *Params) { p.Hash = "md5" }, func(err error) bool { return errors.As(err, new(*hashes.UnknownError)) }},
		{"few iterations", func(p *Params) { p.Iterations = 999 }, isParam},
		{"function", func(p *Params) { p.KDF = "scrypt" }, isParam},
		{"argon2 without cost", func(p *Params) { p.KDF = Argon2id }, func(err error) bool { return errors.As(err, new(*kdf.Argon2Error)) }},
		{"slot", func(p *Params) { p.Slot = 32 }, isParam},
		{"label", func(p *Params) { p.Label = strings.Repeat("x", 48) }, isParam},
		{"UUID", func(p *Params) { p.UUID = "x" }, isParam},
		{"sector size", func(p *Params) { p.SectorSize = 8192 }, isParam},
		{"no whole sectors", func(p *Params) { p.SectorSize = 4096 }, isParam},
		{"payload in the header", func(p *Params) { p.PayloadOffset = 4096 }, isParam},
	} {
		p := quick2
		c.edit(&p)
		s := newStore(8<<20 + 512)
		if f, err := Format(background, Attached(s), passphrase, p); f != nil || !c.typed(err) {
			t.Errorf("%s: got %v", c.name, err)
		}
		if !bytes.Equal(s.Bytes(), bytes.Repeat([]byte{0xA5}, 8<<20+512)) {
			t.Errorf("%s: something was written", c.name)
		}
	}
	least, err := MinSize(quick2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Format(background, Attached(newStore(least-1)), passphrase, quick2); !errors.As(err, new(*SizeError)) {
		t.Errorf("too small: %v", err)
	}
	formatStore(t, newStore(least), quick2)
}
