package luks1

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks"
)

// TestSaveSurvivesPowerCuts cuts the power in each operation of Save onto a
// disk without header: none appears but the whole one.
func TestSaveSurvivesPowerCuts(t *testing.T) {
	h, storeSize := newHeader(t)
	random := rand.New(rand.NewPCG(1, 1))
	seen := map[bool]bool{}
	for cut := 0; ; cut++ {
		s := faultstore.New(make([]byte, storeSize))
		ops := 0
		s.Fault = func(faultstore.Op) error {
			if ops++; ops > cut {
				return faultstore.ErrPower
			}
			return nil
		}
		err := h.Save(s)
		for i := range 20 {
			choose := random.IntN
			switch i {
			case 0:
				choose = faultstore.Oldest
			case 1:
				choose = faultstore.Newest
			}
			after := s.AfterPowerCut(choose).Bytes()
			got, parseErr := Parse(after)
			seen[parseErr == nil] = true
			if parseErr == nil && *got != *h {
				t.Fatalf("cut at operation %d: half a header: %v", cut, got.Faults(storeSize, storeSize))
			}
		}
		if err == nil {
			break
		}
		if !errors.Is(err, faultstore.ErrPower) {
			t.Fatal(err)
		}
	}
	if !seen[true] || !seen[false] {
		t.Errorf("headers seen: %v", seen)
	}
}

// A lying disk takes writes and keeps none.
type lyingDisk struct{ *faultstore.Store }

func (lyingDisk) WriteAt(p []byte, off int64) (int, error) { return len(p), nil }

func TestSaveReadsBack(t *testing.T) {
	h, _ := newHeader(t)
	err := h.Save(lyingDisk{faultstore.New(make([]byte, 4096))})
	if field := new(luks.FieldError); !errors.As(err, &field) || field.Field != "header" || field.Slot != -1 {
		t.Errorf("a header that was not written: got %v, want a FieldError", err)
	}
}

func TestSaveFaults(t *testing.T) {
	h, _ := newHeader(t)
	for failing := range 5 {
		s := faultstore.New(make([]byte, 4096))
		ops := 0
		s.Fault = func(faultstore.Op) error {
			if ops++; ops == failing+1 {
				return syscall.EIO
			}
			return nil
		}
		if err := h.Save(s); !errors.Is(err, syscall.EIO) {
			t.Errorf("operation %d fails: got %v", failing, err)
		}
	}
}
