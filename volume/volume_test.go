package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// TestConcurrentWriters has each goroutine own every eighth run of bytes, of
// odd lengths, so that all share sectors with others.
func TestConcurrentWriters(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			store := newStore(layoutStoreSize)
			v := l.open(t, store, Options{})
			const writers, run = 8, 711
			size := v.Size()
			final := make([][]byte, size/run)
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					random := rand.New(rand.NewPCG(uint64(w), 9))
					for round := range 200 {
						i := random.IntN(len(final)/writers)*writers + w
						mine := randomBytes(random, run)
						if _, err := v.WriteAt(mine, int64(i*run)); err != nil {
							t.Error(err)
							return
						}
						final[i] = mine
						got := make([]byte, run)
						if _, err := v.ReadAt(got, int64(i*run)); err != nil || !bytes.Equal(got, mine) {
							t.Errorf("round %d: run %d is not what was just written (%v)", round, i, err)
							return
						}
						if round%50 == 0 {
							if err := v.Sync(); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			all := readAll(t, v, size)
			for i, want := range final {
				if want != nil && !bytes.Equal(all[i*run:][:run], want) {
					t.Errorf("run %d is not what was written last", i)
				}
			}
		})
	}
}

// TestReadersBesideAWriter: a sector is rewritten whole for each change of a
// part, and with CBC all of it changes. Readers of its other bytes must not see
// that.
func TestReadersBesideAWriter(t *testing.T) {
	store := &tearingStore{Store: newStore(layoutStoreSize)}
	v := layouts[1].open(t, store, Options{})
	if _, err := v.WriteAt(bytes.Repeat([]byte{7}, 4096), 0); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, from := range []int64{2048, 4000} {
		wg.Go(func() {
			p := make([]byte, 4096-from)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := v.ReadAt(p, from); err != nil || !bytes.Equal(p, bytes.Repeat([]byte{7}, len(p))) {
					t.Errorf("bytes from %d that nobody writes have changed (%v)", from, err)
					return
				}
			}
		})
	}
	for i := range 3000 {
		if _, err := v.WriteAt([]byte{byte(i)}, int64(i%1000)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
}

// tearingStore writes in small pieces, so that readers can get in between.
type tearingStore struct{ *faultstore.Store }

func (s *tearingStore) WriteAt(p []byte, off int64) (int, error) {
	for at := 0; at < len(p); at += 64 {
		if n, err := s.Store.WriteAt(p[at:min(at+64, len(p))], off+int64(at)); err != nil {
			return at + n, err
		}
	}
	return len(p), nil
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

func TestOnlyTheFaultyPlaceFails(t *testing.T) {
	l := layouts[0]
	store := newStore(layoutStoreSize)
	v := l.open(t, store, Options{})
	model := readAll(t, v, v.Size())
	// Byte 100000 of the volume lies in the sector that begins at 99840.
	const bad = 99840
	inBad := func(op faultstore.Op) bool {
		at := op.Off - l.extents[0].offset
		return at < bad+512 && bad < at+int64(op.Len)
	}
	var failing faultstore.Kind
	store.Fault = func(op faultstore.Op) error {
		if op.Kind == failing && inBad(op) {
			return syscall.EIO
		}
		return nil
	}
	for _, c := range []struct {
		name     string
		n        int
		off      int64
		failing  faultstore.Kind
		read     bool
		wantErr  error
		wantDone int
	}{
		{"read there", 512, bad, faultstore.Read, true, syscall.EIO, 0},
		{"read part of it", 3, bad + 5, faultstore.Read, true, syscall.EIO, 0},
		{"read across, from a part", 2048, bad - 612, faultstore.Read, true, syscall.EIO, 100},
		{"read beside", 512, bad + 512, faultstore.Read, true, nil, 512},
		{"write there", 512, bad, faultstore.Write, false, syscall.EIO, 0},
		{"write part of it", 3, bad + 5, faultstore.Write, false, syscall.EIO, 0},
		{"write part of it, unreadable", 3, bad + 5, faultstore.Read, false, syscall.EIO, 0},
		{"write all of it, unreadable", 512, bad, faultstore.Read, false, nil, 512},
		{"write beside", 512, bad - 512, faultstore.Write, false, nil, 512},
	} {
		t.Run(c.name, func(t *testing.T) {
			failing = c.failing
			p := bytes.Repeat([]byte{byte(len(c.name))}, c.n)
			op := v.WriteAt
			if c.read {
				op = v.ReadAt
			}
			n, err := op(p, c.off)
			if n != c.wantDone || !errors.Is(err, c.wantErr) {
				t.Errorf("got %d, %v; want %d, %v", n, err, c.wantDone, c.wantErr)
			}
			if c.read && !bytes.Equal(p[:n], model[c.off:][:n]) {
				t.Error("what was read is wrong")
			}
			if !c.read {
				copy(model[c.off:], p[:n])
			}
		})
	}
	store.Fault = nil
	if !bytes.Equal(readAll(t, v, v.Size()), model) {
		t.Error("a failed write has changed something")
	}
}

func TestShortTransfers(t *testing.T) {
	l := layouts[0]
	store := newStore(layoutStoreSize)
	v := l.open(t, store, Options{})
	store.Fault = func(faultstore.Op) error { return faultstore.Short(100) }
	var short faultstore.Short
	if n, err := v.WriteAt(make([]byte, 1024), 0); n != 0 || !errors.As(err, &short) {
		t.Errorf("write: %d, %v", n, err)
	}
	if n, err := v.ReadAt(make([]byte, 1024), 0); n != 0 || !errors.As(err, &short) {
		t.Errorf("read: %d, %v", n, err)
	}
	// A store that breaks the rules of io.WriterAt and io.ReaderAt.
	v = l.open(t, shortStore{newStore(layoutStoreSize)}, Options{})
	if n, err := v.WriteAt(make([]byte, 1024), 0); n != 0 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("silent short write: %d, %v", n, err)
	}
	if n, err := v.ReadAt(make([]byte, 1024), 0); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("silent short read: %d, %v", n, err)
	}
}

type shortStore struct{ *faultstore.Store }

func (s shortStore) WriteAt(p []byte, off int64) (int, error) { return s.Store.WriteAt(p[:10], off) }
func (s shortStore) ReadAt(p []byte, off int64) (int, error)  { return s.Store.ReadAt(p[:10], off) }

// TestTruncatedWhileOpen: what is gone cannot be read, the rest can.
func TestTruncatedWhileOpen(t *testing.T) {
	l := layouts[0]
	v := l.open(t, newStore(1<<20), Options{})
	if n, err := v.ReadAt(make([]byte, 4096), 2<<20); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("behind the end of the store: %d, %v", n, err)
	}
	if n, err := v.ReadAt(make([]byte, 4096), 0); n != 4096 || err != nil {
		t.Errorf("before it: %d, %v", n, err)
	}
	if n, err := v.WriteAt(make([]byte, 4096), 2<<20); n != 0 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write behind it: %d, %v", n, err)
	}
}

func TestFailedSyncIsSticky(t *testing.T) {
	l := layouts[0]
	store := newStore(layoutStoreSize)
	v := l.open(t, store, Options{})
	if err := v.Sync(); err != nil {
		t.Fatal(err)
	}
	store.Fault = func(op faultstore.Op) error {
		if op.Kind == faultstore.Sync {
			return syscall.EIO
		}
		return nil
	}
	if err := v.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v, want EIO", err)
	}
	store.Fault = nil
	if err := v.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the second sync gives %v, want the error of the first", err)
	}
	if _, err := v.WriteAt(make([]byte, 512), 0); err != nil {
		t.Errorf("writing after a failed sync: %v", err)
	}
	for range 2 {
		if err := v.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close gives %v, want the error of the sync", err)
		}
	}
}

func TestCloseSyncsAndEndsAll(t *testing.T) {
	l := layouts[0]
	store := newStore(layoutStoreSize)
	v := l.open(t, store, Options{})
	if _, err := v.WriteAt(make([]byte, 100), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if !bytes.Equal(store.AfterPowerCut(faultstore.Oldest).Bytes(), store.Bytes()) {
		t.Error("Close did not sync")
	}
	_, readErr := v.ReadAt(make([]byte, 1), 0)
	_, writeErr := v.WriteAt(make([]byte, 1), 0)
	for name, err := range map[string]error{
		"read": readErr, "write": writeErr, "sync": v.Sync(), "discard": v.Discard(0, 512), "fill": v.Fill(background, nil),
	} {
		if err != ErrClosed {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}

// wipeSpy tells whether a cipher is used after it was wiped.
type wipeSpy struct {
	SectorCipher
	t     *testing.T
	wiped *bool
}

func (s wipeSpy) Wipe() { *s.wiped = true; s.SectorCipher.Wipe() }
func (s wipeSpy) Encrypt(dst, src []byte, first uint64) {
	if *s.wiped {
		s.t.Error("used after it was wiped")
		return
	}
	s.SectorCipher.Encrypt(dst, src, first)
}

func TestCloseWaitsThenWipes(t *testing.T) {
	store := newStore(layoutStoreSize)
	v := layouts[0].open(t, store, Options{})
	var wiped bool
	v.segments[0].cipher = wipeSpy{v.segments[0].cipher, t, &wiped}
	inWrite, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	store.Fault = func(op faultstore.Op) error {
		if op.Kind == faultstore.Write {
			once.Do(func() { close(inWrite); <-goOn })
		}
		return nil
	}
	wrote := make(chan error)
	go func() {
		// Long enough to need the cipher again after the first piece.
		_, err := v.WriteAt(make([]byte, 2<<20), 0)
		wrote <- err
	}()
	<-inWrite
	closed := make(chan error)
	go func() { closed <- v.Close() }()
	for v.life.TryRLock() { // until Close waits
		v.life.RUnlock()
	}
	close(goOn)
	if err := <-wrote; err != nil {
		t.Errorf("the write that was running: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if !wiped {
		t.Error("the cipher was not wiped")
	}
}

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
