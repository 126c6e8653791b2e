package volume

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks2"
)

func TestRepairLUKS1(t *testing.T) {
	c := subjects(t)[0]
	const (
		slot0 = atSlots
		slot1 = atSlots + slotLength
		slot5 = atSlots + 5*slotLength
	)
	for _, damage := range []struct {
		name   string
		fields map[int64]uint32
		mended []string
		opens  [][]byte
	}{
		{"none", nil, nil, [][]byte{oldPassphrase, otherPassphrase}},
		{"state of a free slot", map[int64]uint32{slot5 + atActive: 7}, []string{"key slot 5: disabled"}, [][]byte{oldPassphrase, otherPassphrase}},
		{"state of a slot in use", map[int64]uint32{slot1 + atActive: 7}, []string{"key slot 1: disabled"}, [][]byte{oldPassphrase}},
		{"iterations", map[int64]uint32{slot0 + atIterations: 0}, []string{"key slot 0: disabled"}, [][]byte{otherPassphrase}},
		{"stripes", map[int64]uint32{slot0 + atStripes: 1}, []string{"key slot 0: stripes set to 4000"}, [][]byte{oldPassphrase, otherPassphrase}},
		{"place in the header", map[int64]uint32{slot1 + atMaterial: 1}, []string{"key slot 1: material sector set to 136"}, [][]byte{oldPassphrase, otherPassphrase}},
		{"place of another", map[int64]uint32{slot0 + atMaterial: 136}, []string{"key slot 0: material sector set to 8"}, [][]byte{oldPassphrase, otherPassphrase}},
		{"place of another before", map[int64]uint32{slot5 + atMaterial: 8}, []string{"key slot 5: material sector set to 648"}, [][]byte{oldPassphrase, otherPassphrase}},
		{"all of a slot", map[int64]uint32{slot1 + atActive: 1, slot1 + atMaterial: 1 << 31, slot1 + atStripes: 0},
			[]string{"key slot 1: disabled", "key slot 1: material sector set to 136", "key slot 1: stripes set to 4000"}, [][]byte{oldPassphrase}},
	} {
		t.Run(damage.name, func(t *testing.T) {
			s := c.copy()
			for at, value := range damage.fields {
				putField(t, s, at, value)
			}
			broken := s.Bytes()
			backups := 0
			backup := func() error {
				backups++
				if !bytes.Equal(s.Bytes(), broken) {
					t.Error("something was written before the backup")
				}
				var copy bytes.Buffer
				return BackupHeader(background, s, &copy)
			}
			no := func(*FormatError) bool { return false }
			if mended, err := Repair(background, s, no, backup); len(mended) > 0 || err != nil || backups > 0 || !bytes.Equal(s.Bytes(), broken) {
				t.Errorf("not confirmed: %q, %v, %d backups", mended, err, backups)
			}
			asked := 0
			yes := func(fault *FormatError) bool { asked++; return fault.Slot >= 0 }
			failed := errors.New("no backup")
			if mended, err := Repair(background, s, yes, func() error { return failed }); damage.mended != nil && (len(mended) > 0 || !errors.Is(err, failed)) || !bytes.Equal(s.Bytes(), broken) {
				t.Errorf("without backup: %q, %v", mended, err)
			}
			mended, err := Repair(background, s, yes, backup)
			if err != nil || !slices.Equal(mended, damage.mended) || backups != min(1, len(damage.mended)) || asked < len(mended) {
				t.Errorf("got %q, %v, %d backups, asked %d times; want %q", mended, err, backups, asked, damage.mended)
			}
			opensWith(damage.opens...)(t, c, s)
			if report := verifyHeaderOf(t, s); report != nil {
				t.Errorf("there is a fault left: %v", report)
			}
			c.samePayload(t, s, "at the end")
		})
	}
}

// verifyHeaderOf returns the first fault of a header.
func verifyHeaderOf(t *testing.T, s Store) error {
	t.Helper()
	r, err := Verify(background, Attached(s), nil, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Err()
}

// TestRepairDoesNotGuess: what is wrong outside the slots stays.
func TestRepairDoesNotGuess(t *testing.T) {
	for at, value := range map[int64]uint32{0: 0, 8: 0x61626364, atPayloadSector: 1 << 31, 108: 17} {
		s := subjects(t)[0].copy()
		putField(t, s, at, value)
		before := s.Bytes()
		mended, err := Repair(background, s,
			func(fault *FormatError) bool { t.Errorf("asked about %v", fault); return true },
			func() error { t.Error("a backup is asked for"); return nil })
		if len(mended) > 0 || at != atPayloadSector && !isFormatError(err) {
			t.Errorf("byte %d: %q, %v", at, mended, err)
		}
		if !bytes.Equal(s.Bytes(), before) {
			t.Errorf("byte %d: something was written", at)
		}
	}
}

// TestRepairLUKS2: each copy from the other. Until then the container opens, and
// says what is wrong.
func TestRepairLUKS2(t *testing.T) {
	c := subjects(t)[1]
	const size = luks2.MinSize
	for _, damage := range []struct {
		name   string
		copy   string
		damage func(s *faultstore.Store)
	}{
		{"primary zeroed", "primary", func(s *faultstore.Store) { s.WriteAt(make([]byte, size), 0) }},
		{"secondary zeroed", "secondary", func(s *faultstore.Store) { s.WriteAt(make([]byte, size), size) }},
		{"a bit of the primary", "primary", func(s *faultstore.Store) { flip(s, 5000) }},
		{"a bit of the secondary", "secondary", func(s *faultstore.Store) { flip(s, size+5000) }},
		{"an old secondary", "secondary", func(s *faultstore.Store) {
			old := s.Bytes()[size : 2*size]
			label := "new"
			if err := Configure(background, s, Texts{Label: &label}); err != nil {
				t.Fatal(err)
			}
			s.WriteAt(old, size)
		}},
	} {
		t.Run(damage.name, func(t *testing.T) {
			s := c.copy()
			damage.damage(s)
			opensWith(oldPassphrase, otherPassphrase)(t, c, s)
			h := headerOf(t, s)
			if len(h.Warnings) != 1 || !strings.HasPrefix(h.Warnings[0].Reason, damage.copy) {
				t.Errorf("it warns of %v", h.Warnings)
			}
			if verifyHeaderOf(t, s) == nil {
				t.Error("verify finds nothing")
			}
			backups := 0
			mended, err := Repair(background, s, nil, func() error { backups++; return nil })
			if err != nil || len(mended) != 1 || !strings.HasPrefix(mended[0], damage.copy) || backups != 1 {
				t.Errorf("got %q, %v, %d backups", mended, err, backups)
			}
			opensWith(oldPassphrase, otherPassphrase)(t, c, s)
			if err := verifyHeaderOf(t, s); err != nil {
				t.Error(err)
			}
			if got := headerOf(t, s); got.Label != h.Label || len(got.Warnings) > 0 {
				t.Errorf("repaired it is %+v", got)
			}
			if mended, err := Repair(background, s, nil, nil); len(mended) > 0 || err != nil {
				t.Errorf("again: %q, %v", mended, err)
			}
		})
	}
	s := c.copy()
	s.WriteAt(make([]byte, 2*size), 0)
	if mended, err := Repair(background, s, nil, nil); len(mended) > 0 || !isFormatError(err) {
		t.Errorf("both zeroed: %q, %v", mended, err)
	}
}

// TestUnreadablePrimary: the secondary copy is enough, and writing the primary
// again may bring it back.
func TestUnreadablePrimary(t *testing.T) {
	c := subjects(t)[1]
	s := c.copy()
	broken := true
	s.Fault = func(op faultstore.Op) error {
		if op.Off >= luks2.MinSize || op.Kind == faultstore.Sync {
			return nil
		}
		if op.Kind == faultstore.Write {
			broken = false
		}
		if broken {
			return syscall.EIO
		}
		return nil
	}
	opensWith(oldPassphrase, otherPassphrase)(t, c, s)
	if h := headerOf(t, s); len(h.Warnings) != 1 {
		t.Errorf("it warns of %v", h.Warnings)
	}
	if mended, err := Repair(background, s, nil, func() error { return nil }); err != nil || len(mended) != 1 {
		t.Errorf("got %q, %v", mended, err)
	}
	if h := headerOf(t, s); len(h.Warnings) != 0 {
		t.Errorf("repaired, it warns of %v", h.Warnings)
	}
}

func flip(s *faultstore.Store, at int64) {
	s.WriteAt([]byte{s.Bytes()[at] ^ 1}, at)
}

// TestRepairAfterFailedUpdates: where a write or sync fails between the two copies,
// one is newer than the other, and where it fails within one, that is torn. Repair
// makes them equal, and no key is lost.
func TestRepairAfterFailedUpdates(t *testing.T) {
	c := subjects(t)[1]
	stale, torn := 0, 0
	for _, u := range updates {
		s := c.copy()
		if u.prepare != nil {
			u.prepare(t, c, s)
		}
		u.before = s.Bytes()
		for _, fault := range []error{syscall.EIO, syscall.ENOSPC, faultstore.Short(700)} {
			for failing := 1; ; failing++ {
				s, finished := u.runWithFault(t, c, failing, fault, faultstore.Write, faultstore.Sync)
				if finished {
					break
				}
				h, err := ReadHeader(Stores{Header: s})
				if err != nil || h.Type != TypeLUKS2 || len(h.Warnings) == 0 {
					continue // there was none, it is LUKS1 by now, or the copies are equal
				}
				if h.Warnings[0].Field == "seqid" {
					stale++
				} else {
					torn++
				}
				when := fmt.Sprintf("%s, %v in operation %d", u.name, fault, failing)
				if mended, err := Repair(background, s, nil, func() error { return nil }); err != nil || len(mended) != 1 {
					t.Errorf("%s: mended %q, %v", when, mended, err)
				}
				if h := headerOf(t, s); len(h.Warnings) > 0 {
					t.Errorf("%s: repaired, it warns of %v", when, h.Warnings)
				}
				u.holds(t, c, s, when)
			}
		}
	}
	if stale < 10 || torn < 10 {
		t.Errorf("only %d stale copies and %d torn ones were mended", stale, torn)
	}
}
