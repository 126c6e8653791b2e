package volume

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
)

// TestBadContainers: whoever opens one gets the same clear error, and nothing
// is written.
func TestBadContainers(t *testing.T) {
	header := make([]byte, 1024)
	if _, err := format(t, quick, 512).ReadAt(header, 0); err != nil {
		t.Fatal(err)
	}
	edit := func(at int64, value uint32) func(t *testing.T) *faultstore.Store {
		return func(t *testing.T) *faultstore.Store {
			s := format(t, quick, 512)
			putField(t, s, at, value)
			return s
		}
	}
	of := func(content []byte) func(t *testing.T) *faultstore.Store {
		return func(t *testing.T) *faultstore.Store { return faultstore.New(bytes.Clone(content)) }
	}
	for _, c := range []struct {
		name   string
		store  func(t *testing.T) *faultstore.Store
		field  string
		slot   int
		offset int64
	}{
		{"nothing", of(nil), "header", -1, 0},
		{"591 bytes", of(header[:591]), "header", -1, 0},
		{"zeros", of(make([]byte, 5000)), "magic", -1, 0},
		{"version 3", of([]byte("LUKS\xBA\xBE\x00\x03" + strings.Repeat("\x00", 4096))), "version", -1, 6},
		{"LUKS2 of size 0", of([]byte("LUKS\xBA\xBE\x00\x02" + strings.Repeat("\x00", 4096))), "hdr_size", -1, 8},
		{"header alone", of(header[:592]), "payload sector", -1, 104},
		{"no payload", func(t *testing.T) *faultstore.Store {
			return faultstore.New(format(t, quick, 512).Bytes()[:quick.PayloadOffset])
		}, "payload sector", -1, 104},
		{"part of a sector as payload", func(t *testing.T) *faultstore.Store {
			return faultstore.New(format(t, quick, 512).Bytes()[:quick.PayloadOffset+511])
		}, "payload sector", -1, 104},
		{"detached", edit(atPayloadSector, 0), "payload sector", -1, 104},
		{"payload behind the end", edit(atPayloadSector, 1<<32-1), "payload sector", -1, 104},
		{"stripes of slot 1", edit(atSlots+slotLength+atStripes, 4001), "stripes", 1, 300},
		{"material of slot 2", edit(atSlots+2*slotLength+atMaterial, 1), "material sector", 2, 344},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.store(t)
			before := s.Bytes()
			check := func(what string, err error) {
				t.Helper()
				var format *FormatError
				if !errors.As(err, &format) {
					t.Fatalf("%s: got %v, want a FormatError", what, err)
				}
				if format.Field != c.field || format.Slot != c.slot || format.Offset != c.offset {
					t.Errorf("%s: got %#v, want %s of slot %d at %d", what, format, c.field, c.slot, c.offset)
				}
			}
			_, err := Unlock(background, Attached(s), passphrase, AnySlot, nil)
			check("Unlock", err)
			_, err = Open(Attached(s), &Key{Bytes: secretCopy(make([]byte, 16))}, Options{})
			check("Open", err)
			_, err = CheckKey(background, Attached(s), make([]byte, 16))
			check("CheckKey", err)
			report, err := Verify(background, Attached(s), nil, Options{}, nil)
			if err != nil {
				t.Fatalf("Verify: %v", err)
			}
			check("Verify", report.Err())
			if !bytes.Equal(s.Bytes(), before) {
				t.Error("something was written")
			}
		})
	}
}

func TestUnreadableHeader(t *testing.T) {
	s := format(t, quick, 512)
	s.Fault = func(faultstore.Op) error { return syscall.EIO }
	if _, err := ReadHeader(Attached(s)); !errors.Is(err, syscall.EIO) {
		t.Errorf("ReadHeader: %v", err)
	}
	if _, err := Verify(background, Attached(s), nil, Options{}, nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("Verify: %v", err)
	}
}

func TestReadHeader(t *testing.T) {
	image, s := imageNamed(t, "l1-keyfile")
	h, err := ReadHeader(Attached(s))
	if err != nil {
		t.Fatal(err)
	}
	if h.Type != "LUKS1" || h.Version != 1 || h.UUID != "f1c574ac-8452-4398-98fa-75f7979b1a4c" || h.Cipher != "serpent" || h.Mode != "xts-plain64" ||
		h.Hash != "sha256" || h.KeyBytes != 64 || h.PayloadOffset != image.PayloadOffset || h.DigestIterations != 1000 {
		t.Errorf("got %+v", h)
	}
	if len(h.Digest) != 20 || h.Digest[0] != 0xD5 || len(h.DigestSalt) != 32 || h.DigestSalt[0] != 0xF2 || len(h.Slots) != 8 {
		t.Fatalf("got %+v", h)
	}
	slot := h.Slots[1]
	if slot.State != SlotEnabled || slot.Iterations != 1000 || slot.Salt[0] != 0x27 && len(slot.Salt) != 32 || slot.MaterialOffset != 512*512 || slot.Stripes != 4000 {
		t.Errorf("slot 1: %+v", slot)
	}
	if h.Slots[2].State != SlotDisabled {
		t.Errorf("slot 2: %+v", h.Slots[2])
	}
	putSlotField(t, s, 2, atActive, 1)
	if h, err := ReadHeader(Attached(s)); err != nil || h.Slots[2].State != SlotInvalid {
		t.Errorf("slot 2 broken: %v, %+v", err, h)
	}
	// With a wrong field, the header comes along with the error.
	putSlotField(t, s, 7, atStripes, 1)
	h, err = ReadHeader(Attached(s))
	if !errors.As(err, new(*FormatError)) || h == nil || h.Slots[7].Stripes != 1 {
		t.Errorf("got %v, %+v", err, h)
	}
}
