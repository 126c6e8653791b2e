package volume

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/golden"
	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/luks"
)

func TestUnlock(t *testing.T) {
	p := quick
	p.Slot = 5
	s := format(t, p, 512)
	for _, slot := range []int{AnySlot, 5} {
		key, err := Unlock(background, Attached(s), passphrase, slot, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key.Slot != 5 || key.Bytes.Len() != 16 {
			t.Errorf("slot %d: opened %d, key of %d bytes", slot, key.Slot, key.Bytes.Len())
		}
		key.Close()
	}
	for _, wrong := range [][]byte{nil, []byte("correct hors"), []byte("correct horse\n"), []byte("Correct horse")} {
		if key, err := Unlock(background, Attached(s), wrong, AnySlot, nil); key != nil || err != ErrPassphrase {
			t.Errorf("%q: %v, want ErrPassphrase", wrong, err)
		}
	}
	for _, slot := range []int{0, 4, 6, 7, 8, -2, 1 << 30} {
		if key, err := Unlock(background, Attached(s), passphrase, slot, nil); key != nil || !errors.Is(err, ErrNoKeySlot) {
			t.Errorf("slot %d: %v, want ErrNoKeySlot", slot, err)
		}
	}
}

// Where fields are in the header: LUKS1 On-Disk Format 1.2.3, tables 1 and 2.
const (
	atPayloadSector    = 104
	atDigestIterations = 164
	atSlots            = 208
	slotLength         = 48
	atActive           = 0
	atIterations       = 4
	atMaterial         = 40
	atStripes          = 44
)

// putField overwrites a 32-bit field.
func putField(t testing.TB, s Store, at int64, value uint32) {
	t.Helper()
	if _, err := s.WriteAt(binary.BigEndian.AppendUint32(nil, value), at); err != nil {
		t.Fatal(err)
	}
}

func putSlotField(t testing.TB, s Store, slot int, field int64, value uint32) {
	t.Helper()
	putField(t, s, atSlots+int64(slot)*slotLength+field, value)
}

// imageNamed returns a golden image as a store.
func imageNamed(t testing.TB, name string) (*golden.Image, *faultstore.Store) {
	t.Helper()
	image := golden.Named(t, name)
	return image, faultstore.New(image.Unpack(t))
}

func TestDamagedSlotsLeaveTheOthersUsable(t *testing.T) {
	image, s := imageNamed(t, "l1-keyfile") // slots 0 and 1
	unlock := func(slot int) (int, error) {
		key, err := Unlock(background, Attached(s), image.Passphrases[slot], AnySlot, nil)
		if err != nil {
			return luks.NoSlot, err
		}
		defer key.Close()
		return key.Slot, nil
	}
	for slot := range 2 {
		if got, err := unlock(slot); got != slot || err != nil {
			t.Fatalf("passphrase %d opens slot %d, %v", slot, got, err)
		}
	}

	// The material of slot 0 cannot be read.
	s.Fault = func(op faultstore.Op) error {
		if op.Off == 4096 {
			return syscall.EIO
		}
		return nil
	}
	if got, err := unlock(1); got != 1 || err != nil {
		t.Errorf("slot 0 unreadable: passphrase 1 opens %d, %v", got, err)
	}
	if _, err := unlock(0); !errors.Is(err, syscall.EIO) {
		t.Errorf("slot 0 unreadable: passphrase 0 gives %v, want EIO", err)
	}
	s.Fault = nil

	// One bit of its material is another.
	b := make([]byte, 1)
	s.ReadAt(b, 100000)
	s.WriteAt([]byte{b[0] ^ 1}, 100000)
	if got, err := unlock(1); got != 1 || err != nil {
		t.Errorf("slot 0 damaged: passphrase 1 opens %d, %v", got, err)
	}
	if _, err := unlock(0); err != ErrPassphrase {
		t.Errorf("slot 0 damaged: passphrase 0 gives %v, want ErrPassphrase", err)
	}
	s.WriteAt(b, 100000)

	// It is neither enabled nor disabled.
	putSlotField(t, s, 0, atActive, 0x00AC71F2)
	if got, err := unlock(1); got != 1 || err != nil {
		t.Errorf("slot 0 invalid: passphrase 1 opens %d, %v", got, err)
	}
	if _, err := Unlock(background, Attached(s), image.Passphrases[0], 0, nil); !errors.Is(err, ErrNoKeySlot) {
		t.Errorf("slot 0 invalid: %v, want ErrNoKeySlot", err)
	}
	putSlotField(t, s, 1, atActive, 0xDEAD)
	if _, err := unlock(1); !errors.Is(err, ErrNoKeySlot) {
		t.Errorf("no slot left: %v, want ErrNoKeySlot", err)
	}
}

func TestCheapSlotsComeFirst(t *testing.T) {
	s := format(t, quick, 512)
	for slot, iterations := range map[int]uint32{0: 2147483647, 2: 1000, 4: 5000, 7: 1000} {
		putSlotField(t, s, slot, atActive, 0x00AC71F3)
		putSlotField(t, s, slot, atIterations, iterations)
	}
	c, err := openContainer(background, Attached(s))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.usableSlots(), []int{2, 7, 4, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

const forEver = kdf.MaxIterations // minutes at least

// listContainer says which slots are tried, and in what order.
type listContainer struct {
	container
	iterations map[int]int // of each slot
	slots      []int
	opens      int
	events     []string
}

func (c *listContainer) usableSlots() []int { return c.slots }

func (c *listContainer) header() *Header {
	h := &Header{Cipher: "serpent", Mode: "xts-plain64", Hash: "sha1", KeyBytes: 64, DigestIterations: 1000, Slots: make([]Slot, 8)}
	for slot, n := range c.iterations {
		h.Slots[slot] = Slot{KDF: PBKDF2, Hash: "sha1", Iterations: n}
	}
	return h
}

func (c *listContainer) checkSlot(slot int) error {
	if slices.Contains(c.slots, slot) {
		return nil
	}
	return ErrNoKeySlot
}

func (c *listContainer) openSlots(_ context.Context, slots []int, _ []byte) (int, *secret.Buffer, error) {
	if len(slots) > 0 {
		c.events = append(c.events, fmt.Sprint("try ", slots))
	}
	if slices.Contains(slots, c.opens) {
		return c.opens, secretCopy(make([]byte, 64)), nil
	}
	return luks.NoSlot, nil, luks.ErrMismatch
}

// TestSlowSlotsComeLast: each is announced, and none before it is needed.
func TestSlowSlotsComeLast(t *testing.T) {
	mixed := map[int]int{5: 1000, 2: 4000, 0: forEver - 1, 7: forEver}
	for _, c := range []struct {
		name string
		slot int // asked for
		in   int // opens with the passphrase
		want []string
	}{
		{"none opens", AnySlot, luks.NoSlot, []string{"try [5 2]", "slow 0", "try [0]", "slow 7", "try [7]"}},
		{"a quick one", AnySlot, 2, []string{"try [5 2]"}},
		{"a slow one", AnySlot, 0, []string{"try [5 2]", "slow 0", "try [0]"}},
		{"only a quick one is asked for", 5, 5, []string{"try [5]"}},
		{"only a slow one is asked for", 7, 7, []string{"slow 7", "try [7]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &listContainer{iterations: mixed, slots: []int{5, 2, 0, 7}, opens: c.in}
			key, err := unlock(background, l, passphrase, c.slot, func(slot int, about time.Duration) {
				if about <= time.Minute {
					t.Errorf("slot %d takes %v only", slot, about)
				}
				l.events = append(l.events, fmt.Sprint("slow ", slot))
			})
			if c.in == luks.NoSlot && err != ErrPassphrase || c.in != luks.NoSlot && (err != nil || key.Slot != c.in) {
				t.Errorf("got %+v, %v", key, err)
			}
			if !slices.Equal(l.events, c.want) {
				t.Errorf("got %q, want %q", l.events, c.want)
			}
			if key, err := unlock(background, l, passphrase, c.slot, nil); err == nil && key.Slot != c.in {
				t.Errorf("with nobody to tell: %+v", key)
			}
		})
	}
}

// TestSlowDigest: then every slot is slow.
func TestSlowDigest(t *testing.T) {
	s := format(t, quick, 512)
	putField(t, s, atDigestIterations, forEver)
	ctx, cancel := context.WithCancel(background)
	told := 0
	_, err := Unlock(ctx, Attached(s), passphrase, AnySlot, func(slot int, _ time.Duration) {
		told++
		cancel()
	})
	if err != context.Canceled || told != 1 {
		t.Errorf("got %v, told of %d slots", err, told)
	}
}

// TestUnlockStopsWithContext: while a slot is derived, and the key out of it
// compared.
func TestUnlockStopsWithContext(t *testing.T) {
	for _, hash := range []string{"sha1", "sha512"} {
		p := quick
		p.Hash = hash
		s := format(t, p, 512)
		key := unlocked(t, s).Bytes.Bytes()
		stopped := func(what string, work func(ctx context.Context) error) {
			ctx, cancel := context.WithCancel(background)
			go cancel()
			if err := work(ctx); err != context.Canceled {
				t.Errorf("%s, %s: got %v", hash, what, err)
			}
		}
		putSlotField(t, s, 0, atIterations, forEver)
		stopped("Unlock", func(ctx context.Context) error {
			_, err := Unlock(ctx, Attached(s), passphrase, AnySlot, nil)
			return err
		})
		putField(t, s, atDigestIterations, forEver)
		stopped("CheckKey", func(ctx context.Context) error {
			_, err := CheckKey(ctx, Attached(s), key)
			return err
		})
		p.Iterations = forEver
		stopped("Format", func(ctx context.Context) error {
			_, err := Format(ctx, Attached(s), passphrase, p)
			return err
		})
	}
}

func TestCheckKey(t *testing.T) {
	s := format(t, quick, 512)
	right := unlocked(t, s).Bytes.Bytes()
	key, err := CheckKey(background, Attached(s), right)
	if err != nil {
		t.Fatal(err)
	}
	if key.Slot != AnySlot || !bytes.Equal(key.Bytes.Bytes(), right) || &key.Bytes.Bytes()[0] == &right[0] {
		t.Errorf("got %+v, want a copy of the key", key)
	}
	key.Close()
	other := bytes.Clone(right)
	other[15] ^= 1
	for _, wrong := range [][]byte{nil, other, make([]byte, 16), make([]byte, 32), right[:15]} {
		if key, err := CheckKey(background, Attached(s), wrong); key != nil || err != ErrVolumeKey {
			t.Errorf("wrong key of %d bytes: %v, want ErrVolumeKey", len(wrong), err)
		}
	}
}

func TestOpen(t *testing.T) {
	s := format(t, quick, 5*512+511)
	v, err := Open(Attached(s), unlocked(t, s), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if v.Size() != 5*512 {
		t.Errorf("size %d, want that of 5 whole sectors", v.Size())
	}
	// A key is trusted, unless it is of no length that the cipher takes.
	for _, size := range []int{0, 15, 17} {
		if v, err := Open(Attached(s), &Key{Bytes: secretCopy(make([]byte, size))}, Options{}); err == nil {
			v.Close()
			t.Errorf("a key of %d bytes is taken", size)
		}
	}
}

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
