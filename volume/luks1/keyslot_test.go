package luks1

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/golden"
	"serpcrypt/internal/secret"
	"serpcrypt/volume/luks"
)

func TestOpenSlotOfGoldenImages(t *testing.T) {
	for _, image := range golden.Small(t) {
		content := image.Unpack(t)
		h, err := Parse(content)
		if err != nil {
			t.Fatal(err)
		}
		for slot, passphrase := range image.Passphrases {
			t.Run(fmt.Sprintf("%s,slot=%d", image.Name, slot), func(t *testing.T) {
				key, err := openSlot(h, bytes.NewReader(content), slot, passphrase)
				if err != nil {
					t.Fatal(err)
				}
				defer key.Close()
				if !bytes.Equal(key.Bytes(), image.VolumeKey) {
					t.Errorf("key is %x, want %x", key.Bytes(), image.VolumeKey)
				}
				if key, err := openSlot(h, bytes.NewReader(content), slot, passphrase[1:]); key != nil || err != luks.ErrMismatch {
					t.Errorf("wrong passphrase: %v", err)
				}
			})
		}
	}
}

var background = context.Background()

// openSlot tries one slot.
func openSlot(h *Header, r io.ReaderAt, slot int, passphrase []byte) (*secret.Buffer, error) {
	opened, key, err := h.OpenSlots(background, r, []int{slot}, passphrase)
	if err == nil && opened != slot {
		err = fmt.Errorf("slot %d has opened", opened)
	}
	return key, err
}

func writeSlot(h *Header, s luks.Store, slot int, key, passphrase []byte, iterations int) error {
	sealed, err := h.SealSlot(background, slot, key, passphrase, iterations)
	if err != nil {
		return err
	}
	return h.WriteSlot(s, sealed)
}

// specs are one of each mode, with every size of key.
var specs = []Params{
	{Spec: "serpent-xts-plain64", KeyBytes: 64, Hash: "sha1"},
	{Spec: "serpent-xts-plain64", KeyBytes: 48, Hash: "sha256"},
	{Spec: "serpent-xts-plain", KeyBytes: 32, Hash: "sha512"},
	{Spec: "serpent-cbc-essiv:sha256", KeyBytes: 32, Hash: "SHA256"},
	{Spec: "serpent-cbc-plain64", KeyBytes: 24, Hash: "sha1"},
	{Spec: "Serpent-CTR-plain64be", KeyBytes: 16, Hash: "sha1"},
	{Spec: "serpent-lrw-benbi", KeyBytes: 48, Hash: "sha1"},
	{Spec: "serpent-ecb", KeyBytes: 32, Hash: "sha512"},
}

func TestWriteSlotThenOpenSlot(t *testing.T) {
	for _, p := range specs {
		t.Run(fmt.Sprintf("%s-%d-%s", p.Spec, 8*p.KeyBytes, p.Hash), func(t *testing.T) {
			h, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			key := make([]byte, p.KeyBytes)
			rand.NewChaCha8([32]byte{5}).Read(key)
			if err := h.SetDigest(background, key, 1000); err != nil {
				t.Fatal(err)
			}
			s := faultstore.New(make([]byte, h.PayloadOffset()))
			passphrases := map[int][]byte{7: []byte("seven"), 0: {}, 3: []byte("\x00three\n")}
			for slot, passphrase := range passphrases {
				if err := writeSlot(h, s, slot, key, passphrase, 1000+slot); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.Save(s); err != nil {
				t.Fatal(err)
			}
			h, err = Parse(s.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if faults := h.Faults(h.PayloadOffset(), h.PayloadOffset()); len(faults) != 0 {
				t.Fatalf("faults: %v", faults)
			}
			for slot, passphrase := range passphrases {
				got, err := openSlot(h, s, slot, passphrase)
				if err != nil {
					t.Fatalf("slot %d: %v", slot, err)
				}
				if !bytes.Equal(got.Bytes(), key) {
					t.Errorf("slot %d has %x, want %x", slot, got.Bytes(), key)
				}
				got.Close()
				if h.Slots[slot].Iterations != uint32(1000+slot) {
					t.Errorf("slot %d has %d iterations", slot, h.Slots[slot].Iterations)
				}
			}
			if h.Slots[0].Salt == h.Slots[3].Salt {
				t.Error("two slots have the same salt")
			}
			if _, err := openSlot(h, s, 1, passphrases[0]); err != luks.ErrSlotUnused {
				t.Errorf("free slot: %v", err)
			}
			if err := writeSlot(h, s, 3, key, passphrases[0], 1000); err != luks.ErrSlotUsed {
				t.Errorf("slot in use: %v", err)
			}
			if err := h.CheckKey(background, key[1:]); err != luks.ErrMismatch {
				t.Errorf("short key: %v", err)
			}
		})
	}
}

// HMAC fills up a short key with zeros, so the digest alone cannot tell.
func TestCheckKeyCountsZeros(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	key[31] = 0
	h, err := New(Params{Spec: "serpent-ecb", KeyBytes: 32, Hash: "sha1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.SetDigest(background, key, 1000); err != nil {
		t.Fatal(err)
	}
	if err := h.CheckKey(background, key); err != nil {
		t.Fatal(err)
	}
	salt := h.DigestSalt
	if err := h.SetDigest(background, key, 1000); err != nil || h.DigestSalt == salt {
		t.Errorf("the same salt again (%v)", err)
	}
	for _, other := range [][]byte{key[:31], append(bytes.Clone(key), 0)} {
		if err := h.CheckKey(background, other); err != luks.ErrMismatch {
			t.Errorf("key of %d bytes: %v", len(other), err)
		}
	}
}

func TestSlotStaysInItsPlace(t *testing.T) {
	for _, p := range specs {
		h, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		s := faultstore.New(bytes.Repeat([]byte{0xA5}, int(h.PayloadOffset())))
		if err := writeSlot(h, s, 2, make([]byte, p.KeyBytes), nil, 1000); err != nil {
			t.Fatal(err)
		}
		begin := h.Slots[2].MaterialOffset()
		end := begin + materialSectors(int64(p.KeyBytes))*SectorSize
		content := s.Bytes()
		for _, outside := range [][]byte{content[:begin], content[end:]} {
			if !bytes.Equal(outside, bytes.Repeat([]byte{0xA5}, len(outside))) {
				t.Errorf("%s: something outside of the slot was written", p.Spec)
			}
		}
		if bytes.Contains(content[begin:end], bytes.Repeat([]byte{0xA5}, 16)) {
			t.Errorf("%s: a part of the slot was left out", p.Spec)
		}
	}
}

func TestFillSlots(t *testing.T) {
	for _, p := range specs {
		h, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		s := faultstore.New(make([]byte, h.PayloadOffset()))
		if err := h.FillSlots(s); err != nil {
			t.Fatal(err)
		}
		content, seen := s.Bytes(), map[string]bool{}
		for i := range h.Slots {
			begin := h.Slots[i].MaterialOffset()
			for at := begin; at < begin+materialSectors(int64(p.KeyBytes))*SectorSize; at += SectorSize {
				sector := content[at : at+SectorSize]
				if seen[string(sector)] || bytes.Count(sector, []byte{0}) > 50 {
					t.Fatalf("%s: the sector at %d of slot %d is not random: %x", p.Spec, at, i, sector)
				}
				seen[string(sector)] = true
				clear(sector)
			}
		}
		if !bytes.Equal(content, make([]byte, len(content))) {
			t.Errorf("%s: something outside of the slots was written", p.Spec)
		}
	}
}

func TestSlotFaults(t *testing.T) {
	h, _ := newHeader(t)
	free := h.Slots[1]
	s := faultstore.New(make([]byte, h.PayloadOffset()))
	s.Fault = func(faultstore.Op) error { return syscall.EIO }
	if key, err := openSlot(h, s, 0, nil); key != nil || !errors.Is(err, syscall.EIO) {
		t.Errorf("read: %v", err)
	}
	if err := writeSlot(h, s, 1, make([]byte, 64), nil, 1000); !errors.Is(err, syscall.EIO) || h.Slots[1] != free {
		t.Errorf("write: %v, slot is %v", err, h.Slots[1])
	}
	short := bytes.NewReader(make([]byte, 10000))
	if key, err := openSlot(h, short, 0, nil); key != nil || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short: %v", err)
	}
}
