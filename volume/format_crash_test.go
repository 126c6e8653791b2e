package volume

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks"
)

// TestPowerCutWhileMaking makes a container where there is one already, and
// cuts the power in each operation of it. Whatever the disk has kept of what
// was not synced: there is the old container, none, or the new one complete.
func TestPowerCutWhileMaking(t *testing.T) {
	for _, p := range []Params{quick, quick2} {
		t.Run(p.Type+",filled", func(t *testing.T) { testPowerCuts(t, p, true) })
		t.Run(p.Type+",sparse", func(t *testing.T) { testPowerCuts(t, p, false) })
	}
}

func testPowerCuts(t *testing.T, p Params, fill bool) {
	least, err := MinSize(p)
	if err != nil {
		t.Fatal(err)
	}
	old := newStore(least + 2*512)
	f, err := Format(background, Attached(old), oldPassphrase, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Close()

	random := newRandom(t)
	seen := map[string]int{}
	for cut := 0; ; cut++ {
		s := faultstore.New(old.Bytes())
		ops := 0
		s.Fault = func(op faultstore.Op) error {
			if ops++; ops > cut {
				return faultstore.ErrPower
			}
			return nil
		}
		err := makeContainer(s, p, fill)
		for i := range 8 {
			choose := random.IntN
			switch i {
			case 0:
				choose = faultstore.Oldest
			case 1:
				choose = faultstore.Newest
			}
			state := stateOf(t, s.AfterPowerCut(choose), oldPassphrase, fill)
			seen[state]++
			switch {
			case state == "broken":
				t.Fatalf("cut at operation %d: a header that opens with neither passphrase, or a payload not filled", cut)
			case err == nil && state != "new":
				t.Fatalf("finished, and the disk has kept: %s", state)
			}
		}
		if err == nil {
			break
		}
		if !errors.Is(err, faultstore.ErrPower) {
			t.Fatal(err)
		}
	}
	if seen["old"] == 0 || seen["none"] == 0 || seen["new"] == 0 {
		t.Errorf("states seen: %v", seen)
	}
}

// forgetful is a disk that loses what is written to its first sector.
type forgetful struct{ *faultstore.Store }

func (f forgetful) WriteAt(p []byte, off int64) (int, error) {
	if off == 0 {
		return len(p), nil
	}
	return f.Store.WriteAt(p, off)
}

func TestCommitReadsBack(t *testing.T) {
	s := newStore(quick.PayloadOffset + 512)
	f, err := Format(background, Attached(s), passphrase, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.at = Attached(forgetful{s})
	var fault *FormatError
	if err := f.Commit(); !errors.As(err, &fault) || fault.Field != "header" || fault.Slot != luks.NoSlot {
		t.Errorf("got %v, want a FormatError of the header", err)
	}
	f.at = Attached(s)
	if err := f.Commit(); err != nil {
		t.Error(err)
	}
}

// makeContainer does what create does, with or without --sparse.
func makeContainer(s Store, p Params, fill bool) error {
	f, err := Format(background, Attached(s), passphrase, p)
	if err != nil {
		return err
	}
	defer f.Close()
	if fill {
		v, err := f.Open(Options{})
		if err != nil {
			return err
		}
		if err := errors.Join(v.Fill(background, nil), v.Close()); err != nil {
			return err
		}
	}
	return f.Commit()
}

// stateOf tells what an interrupted makeContainer has left.
func stateOf(t *testing.T, s Store, oldPassphrase []byte, filled bool) string {
	if _, err := ReadHeader(Attached(s)); errors.As(err, new(*FormatError)) {
		return "none"
	} else if err != nil {
		t.Fatal(err)
	}
	if key, err := Unlock(background, Attached(s), oldPassphrase, AnySlot, nil); err == nil {
		key.Close()
		return "old"
	}
	key, err := Unlock(background, Attached(s), passphrase, AnySlot, nil)
	if err != nil {
		return "broken"
	}
	defer key.Close()
	v, err := Open(Attached(s), key, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if filled && !bytes.Equal(readAll(t, v, v.Size()), make([]byte, v.Size())) {
		return "broken"
	}
	return "new"
}

// TestFaultsWhileMaking has each operation fail once, in different ways.
func TestFaultsWhileMaking(t *testing.T) {
	for _, p := range []Params{quick, quick2} {
		t.Run(p.Type, func(t *testing.T) { testFaultsWhileMaking(t, p) })
	}
}

func testFaultsWhileMaking(t *testing.T, p Params) {
	least, err := MinSize(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC, faultstore.Short(3)} {
		for failing := 0; ; failing++ {
			s := newStore(least + 512)
			ops, happened, isRead := 0, false, false
			s.Fault = func(op faultstore.Op) error {
				if ops++; ops == failing+1 {
					happened, isRead = true, op.Kind == faultstore.Read
					return fault
				}
				return nil
			}
			err := makeContainer(s, p, true)
			s.Fault = nil
			if !happened {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			// What is only looked at in passing need not be readable.
			if !errors.Is(err, fault) && !(isRead && err == nil) {
				t.Errorf("%v in operation %d: got %v", fault, failing, err)
			}
			// Only what reads the finished container back may leave it there.
			if state := stateOf(t, s, nil, true); state == "broken" {
				t.Errorf("%v in operation %d: a broken container is left", fault, failing)
			}
		}
	}
}
