package luks1

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"serpcrypt/volume/luks"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		edit   func(h *Header)
		field  string // "" if it is valid
		slot   int
		offset int64
		reason string // part of it
	}{
		{"as it was made", func(h *Header) {}, "", 0, 0, ""},
		{"upper case", func(h *Header) {
			h.CipherName, h.CipherMode, h.Hash = name("SERPENT"), name("XTS-Plain64"), name("SHA1")
		}, "", 0, 0, ""},
		{"bytes behind the NUL", func(h *Header) { h.Hash = name("sha1\x00\xFF") }, "", 0, 0, ""},

		{"cipher name without NUL", func(h *Header) { h.CipherName = name(strings.Repeat("s", 32)) }, "cipher name", -1, 8, "NUL"},
		{"cipher name not text", func(h *Header) { h.CipherName = name("serpent\x80") }, "cipher name", -1, 8, "no text"},
		{"cipher name empty", func(h *Header) { h.CipherName = Name{} }, "cipher name", -1, 8, "unknown"},
		{"other cipher", func(h *Header) { h.CipherName = name("twofish") }, "cipher name", -1, 8, `"twofish"`},
		{"cipher mode without NUL", func(h *Header) { h.CipherMode = name(strings.Repeat("x", 32)) }, "cipher mode", -1, 40, "NUL"},
		{"cipher mode not text", func(h *Header) { h.CipherMode = name("xts\n") }, "cipher mode", -1, 40, "no text"},
		{"cipher mode empty", func(h *Header) { h.CipherMode = Name{} }, "cipher mode", -1, 40, "mode"},
		{"unknown mode", func(h *Header) { h.CipherMode = name("pcbc-plain") }, "cipher mode", -1, 40, "pcbc"},
		{"unknown IV", func(h *Header) { h.CipherMode = name("xts-plain128") }, "cipher mode", -1, 40, "plain128"},
		{"ESSIV with a long hash", func(h *Header) { h.CipherMode = name("cbc-essiv:sha512") }, "cipher mode", -1, 40, "sha512"},

		{"hash without NUL", func(h *Header) { h.Hash = name(strings.Repeat("h", 32)) }, "hash", -1, 72, "NUL"},
		{"hash not text", func(h *Header) { h.Hash = name("sha\x01") }, "hash", -1, 72, "no text"},
		{"hash empty", func(h *Header) { h.Hash = Name{} }, "hash", -1, 72, "unknown"},
		{"hash too short", func(h *Header) { h.Hash = name("md5") }, "hash", -1, 72, "md5"},
		{"no such hash", func(h *Header) { h.Hash = name("nosuch") }, "hash", -1, 72, "nosuch"},

		{"detached", func(h *Header) { h.PayloadSector = 0 }, "", 0, 0, ""},
		{"payload ends the container", func(h *Header) { h.PayloadSector += 2048 }, "", 0, 0, ""},
		{"payload right behind the slots", func(h *Header) { h.PayloadSector = 4036 }, "", 0, 0, ""},
		{"payload behind the container", func(h *Header) { h.PayloadSector += 2049 }, "payload sector", -1, 104, "ends at"},
		{"payload far behind", func(h *Header) { h.PayloadSector = math.MaxUint32 }, "payload sector", -1, 104, "ends at"},
		{"payload over slot 7", func(h *Header) { h.PayloadSector = 4035 }, "material sector", 7, 584, "payload"},
		{"payload over slot 0", func(h *Header) { h.PayloadSector = 1 }, "material sector", 0, 248, "payload"},

		{"no key", func(h *Header) { h.KeyBytes = 0 }, "key bytes", -1, 108, "0 bits"},
		{"key of 20 bytes", func(h *Header) { h.KeyBytes = 20 }, "key bytes", -1, 108, "160 bits"},
		{"key of 65 bytes", func(h *Header) { h.KeyBytes = 65 }, "key bytes", -1, 108, "520 bits"},
		{"key of 1 GiB", func(h *Header) { h.KeyBytes = 1 << 30 }, "key bytes", -1, 108, "1073741824"},
		{"key of 4 GiB", func(h *Header) { h.KeyBytes = math.MaxUint32 }, "key bytes", -1, 108, "4294967295"},

		{"no digest iterations", func(h *Header) { h.DigestIterations = 0 }, "digest iterations", -1, 164, "0"},
		{"one digest iteration", func(h *Header) { h.DigestIterations = 1 }, "", 0, 0, ""},

		{"UUID empty", func(h *Header) { h.UUID = UUID{} }, "UUID", -1, 168, `""`},
		{"UUID not text", func(h *Header) { fill(h.UUID[:]) }, "UUID", -1, 168, "NUL"},
		{"UUID without NUL", func(h *Header) { h.UUID = id(strings.Repeat("a", 40)) }, "UUID", -1, 168, "NUL"},
		{"UUID of another form", func(h *Header) { h.UUID = id("6ba7b8109dad11d180b400c04fd430c8") }, "UUID", -1, 168, "no UUID"},
		{"UUID with a wrong digit", func(h *Header) { h.UUID[0] = 'g' }, "UUID", -1, 168, "no UUID"},
		{"UUID in upper case", func(h *Header) { h.UUID = id("6BA7B810-9DAD-11D1-80B4-00C04FD430C8") }, "", 0, 0, ""},

		{"slot neither enabled nor disabled", func(h *Header) { h.Slots[3].Active = 1 }, "", 0, 0, ""},
		{"no iterations", func(h *Header) { h.Slots[0].Iterations = 0 }, "iterations", 0, 212, "0"},
		{"no iterations in a free slot", func(h *Header) { h.Slots[1].Iterations = 0 }, "", 0, 0, ""},
		{"most iterations", func(h *Header) { h.Slots[0].Iterations = math.MaxInt32 }, "", 0, 0, ""},
		{"no stripes", func(h *Header) { h.Slots[2].Stripes = 0 }, "stripes", 2, 348, "always 4000"},
		{"3999 stripes", func(h *Header) { h.Slots[7].Stripes = 3999 }, "stripes", 7, 588, "always 4000"},
		{"4001 stripes", func(h *Header) { h.Slots[0].Stripes = 4001 }, "stripes", 0, 252, "always 4000"},
		{"most stripes", func(h *Header) { h.Slots[0].Stripes = math.MaxUint32 }, "stripes", 0, 252, "always 4000"},
		{"material at 0", func(h *Header) { h.Slots[4].MaterialSector = 0 }, "material sector", 4, 440, "header"},
		{"material in the header's second sector", func(h *Header) { h.Slots[0].MaterialSector = 1 }, "material sector", 0, 248, "header"},
		{"material right behind the header", func(h *Header) { h.Slots[0].MaterialSector = 2 }, "", 0, 0, ""},
		{"material over the next", func(h *Header) { h.Slots[1].MaterialSector += 5 }, "material sector", 2, 344, "overlaps key slot 1"},
		{"material right before the next", func(h *Header) { h.Slots[1].MaterialSector += 4 }, "", 0, 0, ""},
		{"material of two slots the same", func(h *Header) { h.Slots[6].MaterialSector = 8 }, "material sector", 6, 536, "overlaps key slot 0"},
		{"material over the payload", func(h *Header) { h.Slots[7].MaterialSector = 4096 - 499 }, "material sector", 7, 584, "payload"},
		{"material in the payload", func(h *Header) { h.Slots[5].MaterialSector = 5000 }, "material sector", 5, 488, "payload"},
		{"material far away", func(h *Header) { h.Slots[5].MaterialSector = math.MaxUint32 }, "material sector", 5, 488, "payload"},
		{"detached, material behind the end", func(h *Header) {
			h.PayloadSector = 0
			h.Slots[5].MaterialSector = math.MaxUint32
		}, "material sector", 5, 488, "container"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, storeSize := newHeader(t)
			c.edit(h)
			err := h.Validate(storeSize, storeSize)
			if c.field == "" {
				if err != nil {
					t.Errorf("got %v, want none", err)
				}
				return
			}
			var field *luks.FieldError
			if !errors.As(err, &field) {
				t.Fatalf("got %v, want a FieldError", err)
			}
			if field.Field != c.field || field.Slot != c.slot || field.Offset != c.offset || !strings.Contains(field.Reason, c.reason) {
				t.Errorf("got %#v, want %s of slot %d at %d with %q", field, c.field, c.slot, c.offset, c.reason)
			}
		})
	}
}

func TestValidateOfShortContainers(t *testing.T) {
	h, _ := newHeader(t)
	for _, c := range []struct {
		size  int64
		field string
	}{
		{h.PayloadOffset(), ""}, // a backup of the header
		{h.PayloadOffset() - 512, "payload sector"},
		{1024, "payload sector"},
		{0, "payload sector"},
	} {
		var field *luks.FieldError
		err := h.Validate(c.size, c.size)
		if errors.As(err, &field) != (c.field != "") || field != nil && field.Field != c.field {
			t.Errorf("%d bytes: got %v, want %q", c.size, err, c.field)
		}
	}
	h.PayloadSector = 0
	if err := h.Validate(h.EndOfSlots(), luks.UnknownSize); err != nil {
		t.Errorf("detached, all slots there: %v", err)
	}
	var field *luks.FieldError
	if err := h.Validate(h.EndOfSlots()-1, 1<<40); !errors.As(err, &field) || field.Slot != 7 {
		t.Errorf("detached, slot 7 cut short: %v", err)
	}
}

func TestPayload(t *testing.T) {
	h, _ := newHeader(t)
	begin := h.PayloadOffset()
	for _, c := range []struct{ storeSize, want int64 }{{begin + 512, 512}, {begin + 1023, 512}, {begin + 1<<40, 1 << 40}} {
		if offset, size, err := h.Payload(c.storeSize, false); offset != begin || size != c.want || err != nil {
			t.Errorf("%d bytes: got %d, %d, %v; want %d, %d", c.storeSize, offset, size, err, begin, c.want)
		}
	}
	refused := func(storeSize int64, detached bool) {
		t.Helper()
		_, _, err := h.Payload(storeSize, detached)
		var field *luks.FieldError
		if !errors.As(err, &field) || field.Field != "payload sector" || field.Slot != -1 || field.Offset != 104 {
			t.Errorf("%d bytes: got %v", storeSize, err)
		}
	}
	for _, storeSize := range []int64{0, 1024, begin - 512, begin, begin + 511} {
		refused(storeSize, false)
		refused(storeSize, true)
	}
	h.PayloadSector = 0
	refused(1<<40, false)
	refused(511, true)
	if offset, size, err := h.Payload(1023, true); offset != 0 || size != 512 || err != nil {
		t.Errorf("detached: got %d, %d, %v", offset, size, err)
	}
}

func TestFaultsOfABrokenActiveField(t *testing.T) {
	h, storeSize := newHeader(t)
	h.Slots[3].Active = 0xDEAC
	faults := h.Faults(storeSize, storeSize)
	if len(faults) != 1 || faults[0].Field != "active" || faults[0].Slot != 3 || faults[0].Offset != 352 {
		t.Errorf("got %v", faults)
	}
	want := "luks: key slot 3: active at byte 352: 0x0000deac means neither enabled (0x00ac71f3) nor disabled (0x0000dead)"
	if got := faults[0].Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFaultsAreInOrderOfOffset(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	h, storeSize := newHeader(t)
	good := h.Marshal()
	most := 0
	for range 2000 {
		b := bytes.Clone(good)
		for range 1 + random.IntN(40) {
			b[8+random.IntN(HeaderSize-8)] = byte(random.Uint32())
		}
		h, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		faults := h.Faults(storeSize, storeSize)
		for i := 1; i < len(faults); i++ {
			if faults[i].Offset < faults[i-1].Offset {
				t.Fatalf("out of order: %v", faults)
			}
		}
		most = max(most, len(faults))
	}
	if most < 5 {
		t.Errorf("never more than %d faults at once", most)
	}
}
