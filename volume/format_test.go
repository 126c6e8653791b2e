package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/hashes"
)

func TestFormatThenOpen(t *testing.T) {
	for _, p := range []Params{
		{Type: TypeLUKS1},
		{Cipher: "serpent-xts-plain64", KeyBits: 256, Hash: "sha256", Slot: 7},
		{Cipher: "serpent-xts-plain", KeyBits: 384, Hash: "sha512", Slot: 3},
		{Cipher: "serpent-cbc-essiv:sha256", KeyBits: 256, Hash: "SHA1"},
		{Cipher: "Serpent-CBC-plain64", KeyBits: 192},
		{Cipher: "serpent-ctr-plain64", KeyBits: 128, Hash: "sha224"},
		{Cipher: "serpent-lrw-benbi", KeyBits: 384},
		{Cipher: "serpent-ecb", KeyBits: 256, Hash: "sha384"},
		{PayloadOffset: 4040 * 512, UUID: "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
	} {
		p.Type, p.Iterations = TypeLUKS1, 1001
		t.Run(fmt.Sprintf("%s-%d-%s,slot=%d", p.Cipher, p.KeyBits, p.Hash, p.Slot), func(t *testing.T) {
			size, err := MinSize(p)
			if err != nil {
				t.Fatal(err)
			}
			s := newStore(size + 9*512)
			f, err := Format(background, Attached(s), passphrase, p)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := ReadHeader(Attached(s)); !errors.As(err, new(*FormatError)) {
				t.Errorf("before Commit it is a container already (%v)", err)
			}
			v, err := f.Open(Options{})
			if err != nil {
				t.Fatal(err)
			}
			if v.Size() != 10*512 {
				t.Errorf("the volume has %d bytes, want %d", v.Size(), 10*512)
			}
			plain := randomBytes(newRandom(t), int(v.Size()))
			if _, err := v.WriteAt(plain, 0); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(v.Close(), f.Commit()); err != nil {
				t.Fatal(err)
			}

			key, err := Unlock(background, Attached(s), passphrase, AnySlot, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer key.Close()
			if key.Slot != p.Slot || !bytes.Equal(key.Bytes.Bytes(), f.key.Bytes()) {
				t.Errorf("slot %d, want %d, or another key", key.Slot, p.Slot)
			}
			v = open(t, s, Options{Kernel: serpent.Generic})
			if !bytes.Equal(readAll(t, v, v.Size()), plain) {
				t.Error("opened again, the volume has changed")
			}

			h, err := ReadHeader(Attached(s))
			if err != nil {
				t.Fatal(err)
			}
			if want := f.Header(); !reflect.DeepEqual(h, want) {
				t.Errorf("header is %+v, want %+v", h, want)
			}
			if got := h.Slots[p.Slot].Iterations; got != p.Iterations {
				t.Errorf("%d iterations, want %d", got, p.Iterations)
			}
			want := p.withDefaults()
			if got := h.Cipher + "-" + h.Mode; got != strings.ToLower(want.Cipher) || 8*h.KeyBytes != want.KeyBits ||
				h.Hash != strings.ToLower(want.Hash) || h.DigestIterations != DigestIterations(want.Iterations) {
				t.Errorf("header is %+v, want %+v", h, want)
			}
			if p.UUID != "" && h.UUID != p.UUID || p.PayloadOffset != 0 && h.PayloadOffset != p.PayloadOffset {
				t.Errorf("header is %+v, want %+v", h, p)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	got := Params{Iterations: 80000}.withDefaults()
	want := Params{Type: TypeLUKS2, KDF: PBKDF2, Cipher: "serpent-xts-plain64", KeyBits: 512, Hash: "sha1", Iterations: 80000}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for iterations, want := range map[int]int{80000: 10000, 7999: 1000, 0: 1000} {
		if got := DigestIterations(iterations); got != want {
			t.Errorf("beside %d iterations the digest takes %d, want %d", iterations, got, want)
		}
	}
	size, err := MinSize(Params{Type: TypeLUKS1, Iterations: 1000})
	if want := int64(4096*512 + 512); err != nil || size != want {
		t.Errorf("smallest size %d, want %d (%v)", size, want, err)
	}
}

func TestFormatWithVolumeKey(t *testing.T) {
	p := quick
	p.VolumeKey = []byte("0123456789abcdef")
	s := format(t, p, 512)
	key, err := Unlock(background, Attached(s), passphrase, AnySlot, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	if !bytes.Equal(key.Bytes.Bytes(), p.VolumeKey) {
		t.Errorf("key is %q, want %q", key.Bytes.Bytes(), p.VolumeKey)
	}
}

func TestFormatLeavesNothingOfBefore(t *testing.T) {
	s := format(t, Params{Type: TypeLUKS1, Iterations: 1000}, 512)
	content := s.Bytes()
	const material, step, payload = 500 * 512, 504 * 512, 4096 * 512
	zero := func(from, to int) {
		t.Helper()
		if !bytes.Equal(content[from:to], make([]byte, to-from)) {
			t.Errorf("bytes %d to %d are not zero", from, to)
		}
	}
	zero(592, 4096)
	seen := map[string]bool{}
	for slot := range 8 {
		begin := 4096 + slot*step
		for at := begin; at < begin+material; at += 16 {
			if block := string(content[at : at+16]); seen[block] || block == strings.Repeat("\xA5", 16) {
				t.Fatalf("slot %d: the block at %d is not random", slot, at)
			} else {
				seen[block] = true
			}
		}
		zero(begin+material, min(begin+step, payload))
	}
	zero(4096+7*step+material, payload)
	if !bytes.Equal(content[payload:], bytes.Repeat([]byte{0xA5}, 512)) {
		t.Error("the payload was written to")
	}
}

func TestFormatDestroysOtherHeaders(t *testing.T) {
	const second = "SKUL\xBA\xBE"
	s := newStore(8 << 20)
	places := []int64{0x4000, 0x8000, 0x10000, 0x20000, 0x40000, 0x80000, 0x100000, 0x200000, 0x400000}
	for _, at := range places {
		if _, err := s.WriteAt([]byte(second), at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.WriteAt([]byte("LUKS\xBA\xBE\x00\x02"), 0); err != nil {
		t.Fatal(err)
	}
	// The first sync already leaves none of them.
	synced := false
	s.Fault = func(op faultstore.Op) error {
		if op.Kind == faultstore.Sync {
			synced = true
		} else if synced {
			return faultstore.ErrPower
		}
		return nil
	}
	if _, err := Format(background, Attached(s), passphrase, quick); !errors.Is(err, faultstore.ErrPower) {
		t.Fatal(err)
	}
	content := s.AfterPowerCut(faultstore.Oldest).Bytes()
	if bytes.HasPrefix(content, []byte("LUKS")) {
		t.Error("the first header is still there")
	}
	if at := bytes.Index(content, []byte(second)); at >= 0 {
		t.Errorf("a second header is still there at %#x", at)
	}
}

func TestFormatRefuses(t *testing.T) {
	is := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	isSpec, isHash, isParam, isSize := is(new(*modes.SpecError)), is(new(*hashes.UnknownError)), is(new(*ParamError)), is(new(*SizeError))
	for _, c := range []struct {
		name  string
		edit  func(p *Params)
		size  int64
		typed func(error) bool
	}{
		{"cipher", func(p *Params) { p.Cipher = "twofish-xts-plain64" }, 8 << 20, isSpec},
		{"key size", func(p *Params) { p.KeyBits = 136 }, 8 << 20, isSpec},
		{"key size not in bytes", func(p *Params) { p.KeyBits = 129 }, 8 << 20, isParam},
		{"hash", func(p *Params) { p.Hash = "md5" }, 8 << 20, isHash},
		{"no iterations", func(p *Params) { p.Iterations = 0 }, 8 << 20, isParam},
		{"too few iterations", func(p *Params) { p.Iterations = 999 }, 8 << 20, isParam},
		{"slot", func(p *Params) { p.Slot = 8 }, 8 << 20, isParam},
		{"negative slot", func(p *Params) { p.Slot = -1 }, 8 << 20, isParam},
		{"volume key", func(p *Params) { p.VolumeKey = make([]byte, 32) }, 8 << 20, isParam},
		{"UUID", func(p *Params) { p.UUID = "x" }, 8 << 20, isParam},
		{"payload offset", func(p *Params) { p.PayloadOffset = 4096 }, 8 << 20, isParam},
		{"empty", func(p *Params) {}, 0, isSize},
		{"a byte too small", func(p *Params) {}, quick.PayloadOffset + 511, isSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := quick
			c.edit(&p)
			s := newStore(c.size)
			if f, err := Format(background, Attached(s), passphrase, p); f != nil || !c.typed(err) {
				t.Errorf("got %v", err)
			}
			if !bytes.Equal(s.Bytes(), bytes.Repeat([]byte{0xA5}, int(c.size))) {
				t.Error("something was written")
			}
			if size, err := MinSize(p); (err == nil) != (c.size < 8<<20) {
				t.Errorf("MinSize: %d, %v", size, err)
			}
		})
	}
}

func TestFormatOfTheSmallestContainer(t *testing.T) {
	s := newStore(quick.PayloadOffset + 512)
	formatStore(t, s, quick)
	if v := open(t, s, Options{}); v.Size() != 512 {
		t.Errorf("the volume has %d bytes, want 512", v.Size())
	}
}

func TestFormatCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	s := format(t, quick, 4096)
	writes := 0
	s.Fault = func(op faultstore.Op) error {
		if op.Kind == faultstore.Write {
			if writes++; writes == 3 {
				cancel()
			}
		}
		return nil
	}
	if f, err := Format(ctx, Attached(s), passphrase, quick); f != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := ReadHeader(Attached(s)); !errors.As(err, new(*FormatError)) {
		t.Errorf("what is left looks like a container (%v)", err)
	}
}

func TestSaltsKeysAndUUIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 5 {
		s := format(t, quick, 512)
		h, err := ReadHeader(Attached(s))
		if err != nil {
			t.Fatal(err)
		}
		key, err := Unlock(background, Attached(s), passphrase, AnySlot, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range []string{h.UUID, string(h.DigestSalt), string(h.Slots[0].Salt), string(key.Bytes.Bytes())} {
			if seen[value] {
				t.Errorf("twice: %x", value)
			}
			seen[value] = true
		}
		key.Close()
	}
}

// TestDetached: nothing but the payload lies in the store of the data, from its
// start or from anywhere behind.
func TestDetached(t *testing.T) {
	for _, c := range []struct {
		p      Params
		offset int64
	}{{quick, 0}, {quick, quick.PayloadOffset}, {quick2, 0}, {quick2, 1 << 20}} {
		t.Run(fmt.Sprintf("%s,offset=%d", c.p.Type, c.offset), func(t *testing.T) {
			p, offset := c.p, c.offset
			p.PayloadOffset, p.Detached = offset, true
			headerSize, err := HeaderSize(p)
			if err != nil {
				t.Fatal(err)
			}
			dataSize, err := MinSize(p)
			if err != nil || dataSize != offset+512 {
				t.Fatalf("the smallest payload ends at byte %d (%v)", dataSize, err)
			}
			at := Stores{newStore(headerSize), newStore(dataSize + 9*512)}
			f, err := Format(background, at, passphrase, p)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
			untouched := bytes.Repeat([]byte{0xA5}, int(dataSize+9*512))
			data := at.Data.(*faultstore.Store)
			if !bytes.Equal(data.Bytes(), untouched) {
				t.Error("the payload was written to")
			}
			key, err := Unlock(background, Stores{Header: at.Header}, passphrase, AnySlot, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer key.Close()
			v, err := Open(at, key, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			if v.Size() != 10*512 {
				t.Errorf("the volume has %d bytes, want %d", v.Size(), 10*512)
			}
			if err := v.Fill(background, nil); err != nil {
				t.Fatal(err)
			}
			if got := data.Bytes(); !bytes.Equal(got[:offset], untouched[:offset]) || bytes.Equal(got[offset:], untouched[offset:]) {
				t.Error("the payload is not from its offset on")
			}
			if r, err := Verify(background, at, key, Options{}, nil); err != nil || r.Err() != nil || r.Bytes != v.Size() {
				t.Errorf("Verify: %v, %+v", err, r)
			}
		})
	}
	p := quick
	p.PayloadOffset, p.Detached = 0, true
	headerSize, err := HeaderSize(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []Stores{{newStore(headerSize - 1), newStore(512)}, {newStore(headerSize), newStore(511)}} {
		if f, err := Format(background, at, passphrase, p); f != nil || !errors.As(err, new(*SizeError)) {
			t.Errorf("too small: %v, want a SizeError", err)
		}
	}
}
