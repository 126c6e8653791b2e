package volume

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/golden"
	"serpcrypt/internal/secret"
)

func TestUnlock(t *testing.T) {
	p := quick
	p.Slot = 5
	s := format(t, p, 512)
	for _, slot := range []int{AnySlot, 5} {
		key, err := Unlock(background, s, passphrase, slot)
		if err != nil {
			t.Fatal(err)
		}
		if key.Slot != 5 || key.Bytes.Len() != 16 {
			t.Errorf("slot %d: opened %d, key of %d bytes", slot, key.Slot, key.Bytes.Len())
		}
		key.Close()
	}
	for _, wrong := range [][]byte{nil, []byte("correct hors"), []byte("correct horse\n"), []byte("Correct horse")} {
		if key, err := Unlock(background, s, wrong, AnySlot); key != nil || err != ErrPassphrase {
			t.Errorf("%q: %v, want ErrPassphrase", wrong, err)
		}
	}
	for _, slot := range []int{0, 4, 6, 7, 8, -2, 1 << 30} {
		if key, err := Unlock(background, s, passphrase, slot); key != nil || !errors.Is(err, ErrNoKeySlot) {
			t.Errorf("slot %d: %v, want ErrNoKeySlot", slot, err)
		}
	}
}

// Where fields are in the header: LUKS1 On-Disk Format 1.2.3, tables 1 and 2.
const (
	atPayloadSector = 104
	atSlots         = 208
	slotLength      = 48
	atActive        = 0
	atIterations    = 4
	atMaterial      = 40
	atStripes       = 44
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
		key, err := Unlock(background, s, image.Passphrases[slot], AnySlot)
		if err != nil {
			return noSlot, err
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
	if _, err := Unlock(background, s, image.Passphrases[0], 0); !errors.Is(err, ErrNoKeySlot) {
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
	c, err := openContainer(s)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.usableSlots(), []int{2, 7, 4, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// slowContainer takes as long as the test wants.
type slowContainer struct {
	container
	began, goOn chan struct{}
	used        []byte // the passphrase or key
}

func (c *slowContainer) usableSlots() []int { return []int{3, 1} }

func (c *slowContainer) openSlot(slot int, passphrase []byte) (*secret.Buffer, error) {
	c.began <- struct{}{}
	<-c.goOn
	c.used = bytes.Clone(passphrase)
	close(c.began)
	return secret.New(16), nil
}

func (c *slowContainer) checkKey(key []byte) error {
	_, err := c.openSlot(0, key)
	return err
}

func TestUnlockDoesNotWaitWhenCancelled(t *testing.T) {
	c := &slowContainer{began: make(chan struct{}), goOn: make(chan struct{})}
	ctx, cancel := context.WithCancel(background)
	own := secretCopy(passphrase)
	go func() {
		<-c.began
		cancel()
	}()
	if key, err := unlock(ctx, c, own.Bytes(), AnySlot); key != nil || err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	// What goes on alone has a passphrase of its own.
	own.Close()
	close(c.goOn)
	<-c.began
	if !bytes.Equal(c.used, passphrase) {
		t.Errorf("derived from %q", c.used)
	}
}

func TestBesideDropsWhatNobodyWaitsFor(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	goOn, dropped := make(chan struct{}), make(chan int)
	if _, err := beside(ctx, func() (int, error) { <-goOn; return 7, nil }, func(i int) { dropped <- i }); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	close(goOn)
	if got := <-dropped; got != 7 {
		t.Errorf("dropped %d", got)
	}
	// Waited for, it is not dropped.
	drop := func(int) { t.Error("dropped") }
	if got, err := beside(background, func() (int, error) { return 8, nil }, drop); got != 8 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if _, err := beside(background, func() (int, error) { return 0, syscall.EIO }, drop); err != syscall.EIO {
		t.Errorf("got %v", err)
	}
}

func TestCheckKey(t *testing.T) {
	s := format(t, quick, 512)
	right := unlocked(t, s).Bytes.Bytes()
	key, err := CheckKey(background, s, right)
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
		if key, err := CheckKey(background, s, wrong); key != nil || err != ErrVolumeKey {
			t.Errorf("wrong key of %d bytes: %v, want ErrVolumeKey", len(wrong), err)
		}
	}
}

func TestCheckKeyDoesNotWaitWhenCancelled(t *testing.T) {
	c := &slowContainer{began: make(chan struct{}), goOn: make(chan struct{})}
	ctx, cancel := context.WithCancel(background)
	go func() {
		<-c.began
		cancel()
	}()
	own := secretCopy(passphrase)
	if key, err := checkKey(ctx, c, own.Bytes()); key != nil || err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	// What goes on alone has a key of its own.
	own.Close()
	close(c.goOn)
	<-c.began
	if !bytes.Equal(c.used, passphrase) {
		t.Errorf("compared %q", c.used)
	}
}

func TestOpen(t *testing.T) {
	s := format(t, quick, 5*512+511)
	v, err := Open(s, unlocked(t, s), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if v.Size() != 5*512 {
		t.Errorf("size %d, want that of 5 whole sectors", v.Size())
	}
	// A key is trusted, unless it is of no length that the cipher takes.
	for _, size := range []int{0, 15, 17} {
		if v, err := Open(s, &Key{Bytes: secretCopy(make([]byte, size))}, Options{}); err == nil {
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
		{"LUKS2", of([]byte("LUKS\xBA\xBE\x00\x02" + strings.Repeat("\x00", 4096))), "version", -1, 6},
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
			_, err := Unlock(background, s, passphrase, AnySlot)
			check("Unlock", err)
			_, err = Open(s, &Key{Bytes: secretCopy(make([]byte, 16))}, Options{})
			check("Open", err)
			_, err = CheckKey(background, s, make([]byte, 16))
			check("CheckKey", err)
			report, err := Verify(background, s, nil, Options{}, nil)
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
	if _, err := ReadHeader(s); !errors.Is(err, syscall.EIO) {
		t.Errorf("ReadHeader: %v", err)
	}
	if _, err := Verify(background, s, nil, Options{}, nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("Verify: %v", err)
	}
}

func TestReadHeader(t *testing.T) {
	image, s := imageNamed(t, "l1-keyfile")
	h, err := ReadHeader(s)
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
	if h, err := ReadHeader(s); err != nil || h.Slots[2].State != SlotInvalid {
		t.Errorf("slot 2 broken: %v, %+v", err, h)
	}
	// With a wrong field, the header comes along with the error.
	putSlotField(t, s, 7, atStripes, 1)
	h, err = ReadHeader(s)
	if !errors.As(err, new(*FormatError)) || h == nil || h.Slots[7].Stripes != 1 {
		t.Errorf("got %v, %+v", err, h)
	}
}
