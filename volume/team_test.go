package volume

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"serpcrypt/internal/faultstore"
)

// onCores has the test run as on so many cores.
func onCores(t *testing.T, n int) {
	t.Helper()
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// openBare opens a volume with a cipher that only copies.
func openBare(t *testing.T, s Store) *Volume {
	t.Helper()
	v, err := NewBare(s, nullCipher{}, 512)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// meetingStore keeps operations waiting for a moment until so many have come.
type meetingStore struct {
	Store
	missing atomic.Int32
	all     chan struct{}
}

func (s *meetingStore) expect(n int32) {
	s.all = make(chan struct{})
	s.missing.Store(n)
}

func (s *meetingStore) met() bool { return s.missing.Load() <= 0 }

func (s *meetingStore) meet() {
	if s.missing.Add(-1) == 0 {
		close(s.all)
	}
	select {
	case <-s.all:
	case <-time.After(50 * time.Millisecond):
		s.missing.Add(1)
	}
}

func (s *meetingStore) ReadAt(p []byte, off int64) (int, error) {
	s.meet()
	return s.Store.ReadAt(p, off)
}

func (s *meetingStore) WriteAt(p []byte, off int64) (int, error) {
	s.meet()
	return s.Store.WriteAt(p, off)
}

// A request that is alone gets all cores, as soon as their threads have come.
func TestLongRequestIsShared(t *testing.T) {
	const cores = 3
	onCores(t, cores)
	s := &meetingStore{Store: newStore(1 << 20)}
	v := openBare(t, s)
	p := make([]byte, 1<<20)
	for what, do := range map[string]func([]byte, int64) (int, error){"read": v.ReadAt, "write": v.WriteAt} {
		met := false
		for start := time.Now(); !met && time.Since(start) < time.Minute; {
			s.expect(cores)
			if n, err := do(p, 0); n != len(p) || err != nil {
				t.Fatalf("%s: %d, %v", what, n, err)
			}
			met = s.met()
		}
		if !met {
			t.Errorf("%s: there were never %d operations at a time", what, cores)
		}
	}
}

// The count is of bytes from the start up to the first part that failed,
// whatever order the parts were done in.
func TestFirstFailureOfSharedRequest(t *testing.T) {
	onCores(t, 4)
	const size = 16 * partSize
	broken := errors.New("broken")
	for _, failing := range [][]int64{{0}, {5 * partSize}, {3 * partSize, 9 * partSize}, {15 * partSize, 1 * partSize, 2 * partSize}} {
		first := int64(size)
		for _, off := range failing {
			first = min(first, off)
		}
		s := newStore(size)
		v := openBare(t, s)
		s.Fault = func(op faultstore.Op) error {
			for _, off := range failing {
				if op.Kind != faultstore.Sync && op.Off <= off && off < op.Off+int64(op.Len) {
					return broken
				}
			}
			return nil
		}
		for what, do := range map[string]func([]byte, int64) (int, error){"read": v.ReadAt, "write": v.WriteAt} {
			p := make([]byte, size)
			if what == "write" { // what is there already
				p = bytes.Repeat([]byte{0xA5}, size)
			}
			n, err := do(p, 0)
			if int64(n) != first || !errors.Is(err, broken) {
				t.Errorf("%s with failures at %v: %d, %v; want %d", what, failing, n, err, first)
			}
			if want := fmt.Sprintf("volume: %s at byte %d of the volume: broken", what, first); err == nil || err.Error() != want {
				t.Errorf("error is %q, want %q", err, want)
			}
			if what == "read" && (bytes.Contains(p[:n], []byte{0}) || n > 0 && p[n-1] != 0xA5) {
				t.Error("not all that was read is there")
			}
		}
	}
}

// Long requests of several goroutines, of every alignment, and in every phase
// of each other.
func TestSharedRequestsBesideEachOther(t *testing.T) {
	onCores(t, 4)
	const area = 5*partSize + 1000 // of each; two have a sector in common
	const users = 3
	s := newStore(users*area/512*512 + 512)
	v := openBare(t, s)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for u := range users {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(u)))
			model := make([]byte, area)
			if _, err := v.WriteAt(model, int64(u*area)); err != nil {
				t.Error(err)
				return
			}
			for i := range 200 {
				n := 1 + r.IntN(area)
				off := r.IntN(area - n + 1)
				part := model[off:][:n]
				if i%2 == 0 {
					for j := range part {
						part[j] = byte(u<<6) | byte(i+j)&63
					}
					if got, err := v.WriteAt(part, int64(u*area+off)); got != n || err != nil {
						t.Errorf("write: %d, %v", got, err)
						return
					}
				}
				got := make([]byte, n)
				if m, err := v.ReadAt(got, int64(u*area+off)); m != n || err != nil {
					t.Errorf("read: %d, %v", m, err)
					return
				}
				if !bytes.Equal(got, part) {
					t.Errorf("user %d, request %d: %d bytes at %d differ", u, i, n, off)
					return
				}
			}
		})
	}
	all.Wait()
	for v.team.working.Load() != 0 { // members who were called too late
		time.Sleep(time.Millisecond)
	}
}

// Parts are at multiples of their size in the volume, without gaps.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		off   int64
		n     int
		parts int64
	}{
		{0, 2 * partSize, 2}, {0, 2*partSize + 1, 3}, {1, 2 * partSize, 3}, {partSize - 1, 2*partSize + 2, 4},
		{7 * partSize, 3 * partSize, 3}, {512, 1 << 20, 17},
	} {
		var k task
		k.begin(nil, make([]byte, c.n), c.off, false)
		if k.parts != c.parts {
			t.Errorf("%d bytes at %d: %d parts, want %d", c.n, c.off, k.parts, c.parts)
		}
		at := 0
		for i := range k.parts {
			from, to := k.part(i)
			if from != at || to <= from || to < c.n && (c.off+int64(to))%partSize != 0 {
				t.Errorf("%d bytes at %d: part %d is from %d to %d", c.n, c.off, i, from, to)
			}
			at = to
		}
		if at != c.n {
			t.Errorf("%d bytes at %d: the parts end at %d", c.n, c.off, at)
		}
	}
}

// A member who comes when the work is done finds nothing to do, and says
// nothing to whoever waits for the next.
func TestLateMember(t *testing.T) {
	k := &task{done: make(chan struct{}, 1)}
	v := openBare(t, newStore(4*partSize))
	for range 3 {
		k.begin(v, make([]byte, 4*partSize), 0, false)
		if !k.work() {
			t.Error("the only worker did not do the last part")
		}
		if n, err := k.end(); n != 4*partSize || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		for range 2 {
			if k.work() {
				t.Error("a late member did the last part")
			}
		}
	}
}

// With one core nobody is called.
func TestSingleCore(t *testing.T) {
	onCores(t, 1)
	s := newStore(1 << 20)
	var operations []faultstore.Op
	s.Fault = func(op faultstore.Op) error { operations = append(operations, op); return nil }
	v := openBare(t, s)
	if _, err := v.ReadAt(make([]byte, 1<<20), 0); err != nil {
		t.Fatal(err)
	}
	if want := 1 << 20 / maxPiece; len(operations) != want {
		t.Errorf("%d operations, want %d", len(operations), want)
	}
}

// When the volume is closed the members go.
func TestMembersLeave(t *testing.T) {
	onCores(t, 8)
	before := runtime.NumGoroutine()
	for range 10 {
		v := openBare(t, newStore(1<<20))
		if _, err := v.ReadAt(make([]byte, 1<<20), 0); err != nil {
			t.Fatal(err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
