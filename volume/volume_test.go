package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"
	"testing"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/faultstore"
)

// TestModel reads, writes and syncs at random, and holds every result against
// a plain slice.
func TestModel(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			random := newRandom(t)
			store := newStore(layoutStoreSize)
			v := l.open(t, store, Options{})
			size := l.size()
			if v.Size() != size {
				t.Fatalf("size is %d, want %d", v.Size(), size)
			}
			model := readAll(t, v, size)
			interesting := interestingPlaces(l)
			place := func() int64 {
				if random.IntN(2) == 0 {
					return random.Int64N(size + 1)
				}
				at := interesting[random.IntN(len(interesting))] + random.Int64N(21) - 10
				return max(0, min(at, size))
			}
			for range 1500 {
				from, to := place(), place()
				if random.IntN(40) > 0 { // mostly small ones
					to = min(size, from+random.Int64N(6000))
				}
				from, to = min(from, to), max(from, to)
				switch op := random.IntN(20); {
				case op < 9:
					p := randomBytes(random, int(to-from))
					if n, err := v.WriteAt(p, from); n != len(p) || err != nil {
						t.Fatalf("write of %d bytes at %d: %d, %v", len(p), from, n, err)
					}
					copy(model[from:], p)
				case op < 19:
					p := make([]byte, to-from)
					n, err := v.ReadAt(p, from)
					if n != len(p) || err != nil && (err != io.EOF || to != size) {
						t.Fatalf("read of %d bytes at %d: %d, %v", len(p), from, n, err)
					}
					if !bytes.Equal(p, model[from:to]) {
						t.Fatalf("read of %d bytes at %d gives something else than was written", len(p), from)
					}
				default:
					if err := v.Sync(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !bytes.Equal(readAll(t, v, size), model) {
				t.Fatal("in the end the volume differs from what was written")
			}
			// Another one over the same store sees the same, and the store outside
			// of the extents was not touched.
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(readAll(t, l.open(t, store, Options{Kernel: serpent.Generic}), size), model) {
				t.Error("opened again, the volume differs from what was written")
			}
			content := store.Bytes()
			for _, e := range l.extents {
				copy(content[e.offset:e.offset+e.size], bytes.Repeat([]byte{0xA5}, int(e.size)))
			}
			if !bytes.Equal(content, bytes.Repeat([]byte{0xA5}, layoutStoreSize)) {
				t.Error("the store was written to outside of the volume")
			}
		})
	}
}

// interestingPlaces are where sectors, pieces, stripes and segments meet.
func interestingPlaces(l layout) []int64 {
	places := []int64{0, l.size(), stripeSize, 2 * stripeSize, maxPiece, 3 * maxPiece}
	for _, e := range l.extents {
		for _, d := range []int64{0, 1, 2, 7} {
			places = append(places, e.start+d*int64(e.sectorSize), e.start+e.size-d*int64(e.sectorSize))
		}
	}
	return slices.DeleteFunc(places, func(p int64) bool { return p < 0 || p > l.size() })
}

// TestCiphertext proves that each segment puts there what the modes package
// makes of the plaintext, under the sector numbers of the extent.
func TestCiphertext(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			store := newStore(layoutStoreSize)
			v := l.open(t, store, Options{})
			plain := randomBytes(newRandom(t), int(l.size()))
			if _, err := v.WriteAt(plain, 0); err != nil {
				t.Fatal(err)
			}
			content := store.Bytes()
			for _, e := range l.extents {
				sectors, err := modes.New(e.spec, bytes.Repeat([]byte("keys"), 8), e.sectorSize, serpent.Generic)
				if err != nil {
					t.Fatal(err)
				}
				defer sectors.Wipe()
				want := make([]byte, e.size)
				for at := int64(0); at < e.size; at += int64(e.sectorSize) {
					sector := plain[e.start+at:][:e.sectorSize]
					sectors.Encrypt(want[at:], sector, e.firstSector+uint64(at)/512)
				}
				if !bytes.Equal(content[e.offset:e.offset+e.size], want) {
					t.Errorf("the ciphertext of the segment at %d is not right", e.start)
				}
			}
		})
	}
}

func TestEdges(t *testing.T) {
	l := layouts[0]
	store := newStore(layoutStoreSize)
	v := l.open(t, store, Options{})
	size := v.Size()
	before := store.Bytes()
	for _, c := range []struct {
		name string
		n    int
		off  int64
		want error
	}{
		{"one byte too many", 11, size - 10, ErrOutside},
		{"a sector too many", 1024, size - 512, ErrOutside},
		{"at the end", 1, size, ErrOutside},
		{"behind the end", 1, size + 100, ErrOutside},
		{"nothing behind the end", 0, size + 1, ErrOutside},
		{"far behind the end", 512, 1<<63 - 1, ErrOutside},
		{"before the beginning", 512, -1, ErrOutside},
	} {
		if n, err := v.WriteAt(make([]byte, c.n), c.off); n != 0 || !errors.Is(err, c.want) {
			t.Errorf("write %s: %d, %v; want 0, %v", c.name, n, err, c.want)
		}
	}
	if !bytes.Equal(store.Bytes(), before) {
		t.Error("a refused write has changed something")
	}
	for _, c := range []struct {
		name string
		n    int
		off  int64
		want int
		err  error
	}{
		{"up to the end", 10, size - 10, 10, nil},
		{"one byte too many", 11, size - 10, 10, io.EOF},
		{"two sectors too many", 1536, size - 512, 512, io.EOF},
		{"at the end", 1, size, 0, io.EOF},
		{"behind the end", 1, size + 100, 0, io.EOF},
		{"far behind the end", 512, 1<<63 - 1, 0, io.EOF},
		{"before the beginning", 512, -1, 0, ErrOutside},
		{"nothing", 0, 5, 0, nil},
	} {
		if n, err := v.ReadAt(make([]byte, c.n), c.off); n != c.want || !errors.Is(err, c.err) {
			t.Errorf("read %s: %d, %v; want %d, %v", c.name, n, err, c.want, c.err)
		}
	}
	if n, err := v.WriteAt(nil, size); n != 0 || err != nil {
		t.Errorf("writing nothing at the end: %d, %v", n, err)
	}
}

func TestAllocations(t *testing.T) {
	store := &plainStore{content: make([]byte, layoutStoreSize)}
	forEachKernel(t, func(t *testing.T, k serpent.Kernel) {
		for _, l := range layouts {
			v := l.open(t, store, Options{Kernel: k})
			p := make([]byte, 512<<10)
			for _, c := range []struct {
				n   int
				off int64
			}{{512, 0}, {4096, 512}, {len(p), 1536}, {100, 100}, {10000, 3}, {1, 511}} {
				var fault error
				read := testing.AllocsPerRun(10, func() { _, fault = v.ReadAt(p[:c.n], c.off) })
				if fault != nil {
					t.Fatal(fault)
				}
				write := testing.AllocsPerRun(10, func() { _, fault = v.WriteAt(p[:c.n], c.off) })
				if fault != nil {
					t.Fatal(fault)
				}
				if read != 0 || write != 0 {
					t.Errorf("%s, %d bytes at %d: reading allocates %v times, writing %v times", l.name, c.n, c.off, read, write)
				}
			}
		}
	})
}

// plainStore is memory and nothing else.
type plainStore struct {
	content []byte
	wrote   []write
}

type write struct {
	off     int64
	n       int
	aligned bool // to a page
}

func (s *plainStore) ReadAt(p []byte, off int64) (int, error)  { return copy(p, s.content[off:]), nil }
func (s *plainStore) WriteAt(p []byte, off int64) (int, error) { return copy(s.content[off:], p), nil }
func (s *plainStore) Sync() error                              { return nil }
func (s *plainStore) Size() (int64, error)                     { return int64(len(s.content)), nil }

func TestReadOnly(t *testing.T) {
	store := newStore(layoutStoreSize)
	v := layouts[0].open(t, store, Options{ReadOnly: true})
	store.Fault = func(op faultstore.Op) error {
		if op.Kind != faultstore.Read {
			t.Errorf("the store was asked to %v", op)
		}
		return nil
	}
	if n, err := v.WriteAt(make([]byte, 512), 0); n != 0 || err != ErrReadOnly {
		t.Errorf("write: %d, %v", n, err)
	}
	if err := v.Discard(0, 512); err != ErrReadOnly {
		t.Errorf("discard: %v", err)
	}
	if err := v.Fill(background, nil); err != ErrReadOnly {
		t.Errorf("fill: %v", err)
	}
	if _, err := v.ReadAt(make([]byte, 512), 0); err != nil {
		t.Errorf("read: %v", err)
	}
	if err := errors.Join(v.Sync(), v.Close()); err != nil {
		t.Errorf("sync and close: %v", err)
	}
}

// punchStore records holes.
type punchStore struct {
	*faultstore.Store
	holes [][2]int64
	err   error
}

func (s *punchStore) PunchHole(off, length int64) error {
	s.holes = append(s.holes, [2]int64{off, length})
	return s.err
}

func TestDiscard(t *testing.T) {
	store := &punchStore{Store: newStore(layoutStoreSize)}
	l := layouts[2]
	v := l.open(t, store, Options{})
	const mib = 1 << 20
	for _, c := range []struct {
		off, n int64
		holes  string
	}{
		{0, 512, "[[1048576 512]]"},
		{1, 511, "[]"},
		{1, 1023, "[[1049088 512]]"},
		{0, 0, "[]"},
		{1536, mib, "[[2097152 1048576]]"},
		{1536 + 1, mib - 1, "[[2101248 1044480]]"},
		{1024, 512 + 4096 + 4095, "[[1049600 512] [2097152 4096]]"},
		{0, v.Size(), "[[1048576 1536] [2097152 1048576] [0 2560]]"},
	} {
		store.holes = nil
		if err := v.Discard(c.off, c.n); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(store.holes); got != c.holes {
			t.Errorf("discard of %d bytes at %d: holes %s, want %s", c.n, c.off, got, c.holes)
		}
	}
	for _, c := range [][2]int64{{-1, 10}, {0, -1}, {0, v.Size() + 1}, {v.Size(), 1}, {1 << 62, 1 << 62}} {
		if err := v.Discard(c[0], c[1]); !errors.Is(err, ErrOutside) {
			t.Errorf("discard of %d bytes at %d: %v, want ErrOutside", c[1], c[0], err)
		}
	}
	store.err = syscall.EOPNOTSUPP
	if err := v.Discard(0, 512); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
	if err := l.open(t, newStore(layoutStoreSize), Options{}).Discard(0, 512); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("store without holes: got %v, want ErrUnsupported", err)
	}
}

// spyStore records writes.
type spyStore struct {
	plainStore
	mu sync.Mutex
}

func (s *spyStore) WriteAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote = append(s.wrote, write{off, len(p), isPageAligned(p)})
	return s.plainStore.WriteAt(p, off)
}

// TestWritesAreFewAndAligned: whole sectors are written once, in big parts,
// out of page-aligned memory.
func TestWritesAreFewAndAligned(t *testing.T) {
	store := &spyStore{plainStore: plainStore{content: make([]byte, layoutStoreSize)}}
	v := layouts[0].open(t, store, Options{})
	const n = 2<<20 + 512
	if _, err := v.WriteAt(make([]byte, n), 512); err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, w := range store.wrote {
		if !w.aligned {
			t.Errorf("%d bytes written from memory that begins no page", w.n)
		}
		written += w.n
	}
	if most := n/partSize + 3; written != n || len(store.wrote) > most {
		t.Errorf("%d bytes in %d writes, want %d in at most %d", written, len(store.wrote), n, most)
	}
}
