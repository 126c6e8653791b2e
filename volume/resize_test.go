package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"serpcrypt/internal/faultstore"
)

// elasticStore is a disk in memory whose length can be changed; it is synced
// by nothing but Sync.
type elasticStore struct {
	*faultstore.Store
	size     int64
	lengths  []int64 // that it may have after a power cut, since the last sync
	reserved int64
	fault    func(what string) error
}

func newElasticStore(content []byte, capacity int) *elasticStore {
	disk := make([]byte, capacity)
	copy(disk, content)
	s := &elasticStore{Store: faultstore.New(disk), size: int64(len(content)), fault: func(string) error { return nil }}
	s.lengths = []int64{s.size}
	return s
}

func (s *elasticStore) Size() (int64, error) { return s.size, nil }

func (s *elasticStore) setSize(size int64) {
	s.size = size
	s.lengths = append(s.lengths, size)
}

func (s *elasticStore) WriteAt(p []byte, off int64) (int, error) {
	if off > s.size {
		return 0, fmt.Errorf("a hole is left behind %d", s.size)
	}
	if err := s.fault("write"); err != nil {
		return 0, err
	}
	n, err := s.Store.WriteAt(p, off)
	if end := off + int64(n); end > s.size {
		s.setSize(end)
	}
	return n, err
}

func (s *elasticStore) Reserve(size int64) error {
	if err := s.fault("reserve"); err != nil {
		return err
	}
	s.reserved = size
	return nil
}

func (s *elasticStore) Truncate(size int64) error {
	if err := s.fault("truncate"); err != nil {
		return err
	}
	s.reserved = 0
	s.setSize(size)
	return nil
}

func (s *elasticStore) Sync() error {
	if err := s.fault("sync"); err != nil {
		return err
	}
	s.lengths = []int64{s.size}
	return s.Store.Sync()
}

const elasticOld, elasticNew = 3<<20 + 700, 6<<20 + 4096

func TestGrow(t *testing.T) {
	old := randomBytes(newRandom(t), elasticOld)
	for _, sparse := range []bool{false, true} {
		s := newElasticStore(old, 8<<20)
		var done, total int64
		if err := grow(background, s, elasticNew, sparse, func(d, all int64) { done, total = d, all }); err != nil {
			t.Fatal(err)
		}
		if s.size != elasticNew || len(s.lengths) != 1 {
			t.Errorf("sparse=%v: the length is %d, want %d, synced", sparse, s.size, elasticNew)
		}
		content := s.Bytes()
		if !bytes.Equal(content[:len(old)], old) {
			t.Errorf("sparse=%v: what was there has changed", sparse)
		}
		unfilled := 0
		for at := len(old); at+16 <= elasticNew; at += 16 {
			if bytes.Equal(content[at:at+16], make([]byte, 16)) {
				unfilled++
			}
		}
		if all := (elasticNew - len(old)) / 16; sparse && unfilled != all || !sparse && unfilled != 0 {
			t.Errorf("sparse=%v: %d of %d pieces are zeros", sparse, unfilled, all)
		}
		if added := int64(elasticNew - elasticOld); !sparse && (done != added || total != added || s.reserved != elasticNew) {
			t.Errorf("progress ends at %d of %d, want %d; %d bytes reserved", done, total, added, s.reserved)
		}
	}
	s := newElasticStore(old, 8<<20)
	if err := grow(background, s, elasticOld-1, false, nil); err == nil || s.size != elasticOld {
		t.Errorf("grown to less: error %v, length %d", err, s.size)
	}
}

// TestGrowFillsDifferently: the same bytes twice would tell that they are no
// ciphertext.
func TestGrowFillsDifferently(t *testing.T) {
	var contents [2][]byte
	for i := range contents {
		s := newElasticStore(make([]byte, 512), 2<<20)
		if err := grow(background, s, 2<<20, false, nil); err != nil {
			t.Fatal(err)
		}
		contents[i] = s.Bytes()[512:]
	}
	if bytes.Equal(contents[0], contents[1]) {
		t.Error("two containers have been filled with the same bytes")
	}
}

// TestGrowthIsUndone: whatever fails, the length is the old one afterwards.
func TestGrowthIsUndone(t *testing.T) {
	old := randomBytes(newRandom(t), elasticOld)
	broken := errors.New("broken")
	for _, sparse := range []bool{false, true} {
		failed := false
		for failing := 1; failing == 1 || failed; failing++ {
			s := newElasticStore(old, 8<<20)
			failed = false
			what, count := "", 0
			s.fault = func(op string) error {
				if count++; count == failing {
					failed, what = true, op
					return broken
				}
				return nil
			}
			err := grow(background, s, elasticNew, sparse, nil)
			if !failed {
				if failing < 3 {
					t.Errorf("sparse=%v: there are only %d operations", sparse, failing-1)
				}
				break
			}
			if !errors.Is(err, broken) || s.size != elasticOld || len(s.lengths) != 1 || s.reserved != 0 {
				t.Errorf("sparse=%v, %s (operation %d) failed: error %v, length %d, %d bytes reserved", sparse, what, failing, err, s.size, s.reserved)
			}
			if !bytes.Equal(s.Bytes()[:len(old)], old) {
				t.Errorf("sparse=%v, %s failed: what was there has changed", sparse, what)
			}
		}
	}
	s := newElasticStore(old, 8<<20)
	ctx, cancel := context.WithCancelCause(background)
	stop := errors.New("enough")
	err := grow(ctx, s, elasticNew, false, func(done, _ int64) {
		if done > 0 {
			cancel(stop)
		}
	})
	if !errors.Is(err, stop) || s.size != elasticOld {
		t.Errorf("interrupted: error %v, length %d", err, s.size)
	}
	// The space may be gone before the end.
	s = newElasticStore(old, 5<<20)
	if err := grow(background, s, elasticNew, false, nil); err == nil || s.size != elasticOld {
		t.Errorf("without space: error %v, length %d", err, s.size)
	}
}

// TestPowerFailsWhileGrowing: at each operation, and with each length that the
// file may have then, what was there is whole.
func TestPowerFailsWhileGrowing(t *testing.T) {
	old := randomBytes(newRandom(t), elasticOld)
	for cut := 1; ; cut++ {
		s := newElasticStore(old, 8<<20)
		count := 0
		s.fault = func(string) error {
			if count++; count >= cut {
				return faultstore.ErrPower
			}
			return nil
		}
		err := grow(background, s, elasticNew, false, nil)
		for _, choose := range []func(int) int{faultstore.Oldest, faultstore.Newest} {
			if content := s.AfterPowerCut(choose).Bytes(); !bytes.Equal(content[:len(old)], old) {
				t.Fatalf("power failed at operation %d: what was there has changed", cut)
			}
		}
		for _, length := range s.lengths {
			if length < elasticOld || length > elasticNew {
				t.Fatalf("power failed at operation %d: the length is %d", cut, length)
			}
		}
		if err == nil {
			break
		}
	}
}

func TestShrink(t *testing.T) {
	old := randomBytes(newRandom(t), elasticOld)
	s := newElasticStore(old, elasticOld)
	if err := shrink(s, 1<<20); err != nil || s.size != 1<<20 || len(s.lengths) != 1 {
		t.Errorf("error %v, length %d, want %d, synced", err, s.size, 1<<20)
	}
	if !bytes.Equal(s.Bytes()[:s.size], old[:s.size]) {
		t.Error("what was to stay has changed")
	}
	if err := shrink(s, 1<<20+1); err == nil || s.size != 1<<20 {
		t.Errorf("shrunk to more: error %v, length %d", err, s.size)
	}
	broken := errors.New("broken")
	for _, failing := range []string{"truncate", "sync"} {
		s := newElasticStore(old, elasticOld)
		s.fault = func(op string) error {
			if op == failing {
				return broken
			}
			return nil
		}
		if err := shrink(s, 1<<20); !errors.Is(err, broken) {
			t.Errorf("%s failed: error %v", failing, err)
		}
		if s.lengths[0] != elasticOld || len(s.lengths) > 2 {
			t.Errorf("%s failed: lengths %v, want at most one new one", failing, s.lengths)
		}
	}
}

// osStore is a Resizable in a real file.
type osStore struct{ *os.File }

func (s osStore) Reserve(int64) error { return nil }
func (s osStore) Size() (int64, error) {
	info, err := s.Stat()
	return info.Size(), err
}

// TestResizedContainer opens it: all that fits is still there.
func TestResizedContainer(t *testing.T) {
	disk := format(t, quick, 64<<10)
	f, err := os.Create(filepath.Join(t.TempDir(), "box"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(disk.Bytes()); err != nil {
		t.Fatal(err)
	}
	s := osStore{f}
	data := randomBytes(newRandom(t), 64<<10)
	v := open(t, s, Options{})
	if _, err := v.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(payload int64) {
		t.Helper()
		v := open(t, s, Options{ReadOnly: true})
		kept := min(payload, int64(len(data)))
		if v.Size() != payload || !bytes.Equal(readAll(t, v, kept), data[:kept]) {
			t.Errorf("the volume has %d bytes, want %d, with the data from before", v.Size(), payload)
		}
	}
	check(64 << 10)
	size, _ := s.Size()
	if err := grow(background, s, size+2<<20, false, nil); err != nil {
		t.Fatal(err)
	}
	check(64<<10 + 2<<20)
	if err := shrink(s, size-32<<10); err != nil {
		t.Fatal(err)
	}
	check(32 << 10)
}
