package luks1

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"serpcrypt/internal/golden"
	"serpcrypt/volume/luks"
)

// newHeader returns a valid header with key slot 0 in use, and the size of a
// container that it fits.
func newHeader(t testing.TB) (*Header, int64) {
	t.Helper()
	h, err := New(Params{Spec: "serpent-xts-plain64", KeyBytes: 64, Hash: "sha1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.SetDigest(background, make([]byte, 64), 1000); err != nil {
		t.Fatal(err)
	}
	h.Slots[0].Active = SlotEnabled
	h.Slots[0].Iterations = 1000
	storeSize := h.PayloadOffset() + 1<<20
	if faults := h.Faults(storeSize, storeSize); len(faults) != 0 {
		t.Fatalf("a new header has faults: %v", faults)
	}
	return h, storeSize
}

func TestParseOfGoldenHeaders(t *testing.T) {
	for _, image := range golden.Small(t) {
		t.Run(image.Name, func(t *testing.T) {
			content := image.Unpack(t)
			h, err := Parse(content)
			if err != nil {
				t.Fatal(err)
			}
			if faults := h.Faults(int64(len(content)), int64(len(content))); len(faults) != 0 {
				t.Errorf("faults: %v", faults)
			}
			if got := h.Marshal(); !bytes.Equal(got, content[:HeaderSize]) {
				t.Errorf("marshalled to\n%x\nwant\n%x", got, content[:HeaderSize])
			}
			// The names contain the cipher, NAME-SPEC-BITS-HASH.
			want := strings.ReplaceAll(image.Name, "_", ":")
			if got := fmt.Sprintf("-%s-%d-%s", strings.TrimPrefix(h.Spec(), "serpent-"), 8*h.KeyBytes, h.Hash); !strings.HasSuffix(want, got) {
				t.Errorf("header says %s, name is %s", got, want)
			}
			if h.PayloadOffset() != image.PayloadOffset {
				t.Errorf("payload at %d, want %d", h.PayloadOffset(), image.PayloadOffset)
			}
			for slot := range h.Slots {
				_, used := image.Passphrases[slot]
				if got := h.Slots[slot].Active == SlotEnabled; got != used {
					t.Errorf("slot %d in use: %v, want %v", slot, got, used)
				}
			}
		})
	}
}

// TestOffsets proves that each named offset is that of its field.
func TestOffsets(t *testing.T) {
	type change struct {
		offset, size int64
		change       func(h *Header)
	}
	changes := map[string]change{
		"magic":             {offMagic, 6, func(h *Header) { h.Magic = [6]byte{1, 1, 1, 1, 1, 1} }},
		"version":           {offVersion, 2, func(h *Header) { h.Version = math.MaxUint16 }},
		"cipher name":       {offCipherName, 32, func(h *Header) { fill(h.CipherName[:]) }},
		"cipher mode":       {offCipherMode, 32, func(h *Header) { fill(h.CipherMode[:]) }},
		"hash":              {offHash, 32, func(h *Header) { fill(h.Hash[:]) }},
		"payload sector":    {offPayloadSector, 4, func(h *Header) { h.PayloadSector = math.MaxUint32 }},
		"key bytes":         {offKeyBytes, 4, func(h *Header) { h.KeyBytes = math.MaxUint32 }},
		"digest":            {offDigest, 20, func(h *Header) { fill(h.Digest[:]) }},
		"digest salt":       {offDigestSalt, 32, func(h *Header) { fill(h.DigestSalt[:]) }},
		"digest iterations": {offDigestIterations, 4, func(h *Header) { h.DigestIterations = math.MaxUint32 }},
		"UUID":              {offUUID, 40, func(h *Header) { fill(h.UUID[:]) }},
	}
	for i := range NumSlots {
		for name, c := range map[string]change{
			"active":          {offActive, 4, func(h *Header) { h.Slots[i].Active = math.MaxUint32 }},
			"iterations":      {offIterations, 4, func(h *Header) { h.Slots[i].Iterations = math.MaxUint32 }},
			"salt":            {offSalt, 32, func(h *Header) { fill(h.Slots[i].Salt[:]) }},
			"material sector": {offMaterialSector, 4, func(h *Header) { h.Slots[i].MaterialSector = math.MaxUint32 }},
			"stripes":         {offStripes, 4, func(h *Header) { h.Slots[i].Stripes = math.MaxUint32 }},
		} {
			c.offset = offsetInSlot(i, c.offset)
			changes[fmt.Sprintf("slot %d %s", i, name)] = c
		}
	}
	var covered int64
	for name, c := range changes {
		h := new(Header)
		c.change(h)
		for i, b := range h.Marshal() {
			if inside := int64(i) >= c.offset && int64(i) < c.offset+c.size; (b != 0) != inside {
				t.Errorf("%s: byte %d is %d", name, i, b)
			}
		}
		covered += c.size
	}
	if covered != HeaderSize {
		t.Errorf("the fields have %d bytes, the header %d", covered, HeaderSize)
	}
}

func fill(b []byte) {
	for i := range b {
		b[i] = 0xFF
	}
}

func TestParseErrors(t *testing.T) {
	h, _ := newHeader(t)
	good := h.Marshal()
	edited := func(edit func(b []byte)) []byte {
		b := bytes.Clone(good)
		edit(b)
		return b
	}
	for _, c := range []struct {
		name   string
		in     []byte
		field  string
		offset int64
	}{
		{"empty", nil, "header", 0},
		{"591 bytes", good[:591], "header", 0},
		{"zeros", make([]byte, 1024), "magic", 0},
		{"ones", bytes.Repeat([]byte{0xFF}, 1024), "magic", 0},
		{"magic", edited(func(b []byte) { b[5] = 0xBF }), "magic", 0},
		{"secondary LUKS2 magic", edited(func(b []byte) { copy(b, "SKUL") }), "magic", 0},
		{"version 0", edited(func(b []byte) { b[7] = 0 }), "version", 6},
		{"version 2", edited(func(b []byte) { b[7] = 2 }), "version", 6},
		{"version 257", edited(func(b []byte) { b[6] = 1 }), "version", 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.in)
			var field *luks.FieldError
			if got != nil || !errors.As(err, &field) {
				t.Fatalf("got %v, %v; want a FieldError", got, err)
			}
			if field.Field != c.field || field.Offset != c.offset || field.Slot != -1 || field.Reason == "" {
				t.Errorf("got %#v, want field %q at %d", field, c.field, c.offset)
			}
		})
	}
}

func name(text string) (n Name) { copy(n[:], text); return n }
func id(text string) (u UUID)   { copy(u[:], text); return u }

func FuzzParse(f *testing.F) {
	for _, image := range golden.Small(f) {
		f.Add(image.Head(f, 1024), image.PayloadOffset+image.PayloadSize)
	}
	h, storeSize := newHeader(f)
	f.Add(h.Marshal(), storeSize)
	f.Add(bytes.Repeat([]byte{0xFF}, 1024), storeSize)
	f.Fuzz(func(t *testing.T, b []byte, storeSize int64) {
		h, err := Parse(b)
		if err != nil {
			if h != nil {
				t.Error("header and error")
			}
			return
		}
		if got := h.Marshal(); !bytes.Equal(got, b[:HeaderSize]) {
			t.Fatalf("marshalled to\n%x\nwant\n%x", got, b[:HeaderSize])
		}
		if h.Validate(storeSize, storeSize) != nil {
			return
		}
		// What Validate passes is safe to allocate, read and write.
		if h.KeyBytes > 64 {
			t.Errorf("key of %d bytes", h.KeyBytes)
		}
		if h.PayloadOffset() > storeSize || h.EndOfSlots() > storeSize {
			t.Errorf("payload at %d, slots end at %d, container at %d", h.PayloadOffset(), h.EndOfSlots(), storeSize)
		}
		for i := range h.Slots {
			if h.Slots[i].MaterialOffset() < 1024 {
				t.Errorf("slot %d at %d", i, h.Slots[i].MaterialOffset())
			}
		}
	})
}
