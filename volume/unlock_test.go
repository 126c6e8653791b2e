package volume

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/golden"
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
