package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/skip"
)

// memory is a file of fixed length. What two write at a time must not overlap.
type memory []byte

func (m memory) WriteAt(p []byte, off int64) (int, error) { return copy(m[off:], p), nil }

// patchy is a store, or a source, that has data in some places only.
type patchy struct {
	Store
	data []byteRange // in order

	mu   sync.Mutex
	read []byteRange
}

func (s *patchy) NextData(off int64) (from, to int64, err error) {
	for _, d := range s.data {
		if off < d.to {
			return max(off, d.from), d.to, nil
		}
	}
	return 0, 0, io.EOF
}

func (s *patchy) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	s.read = append(s.read, byteRange{off, off + int64(len(p))})
	s.mu.Unlock()
	return s.Store.ReadAt(p, off)
}

// patterns of data, in bytes of the store.
var patterns = map[string][]byteRange{
	"all":               {{0, layoutStoreSize}},
	"nothing":           {},
	"beyond the end":    {{0, 1 << 62}},
	"the beginning":     {{0, 70000}},
	"single sectors":    {{8192, 8704}, {12288, 12800}, {1<<20 + 4096, 1<<20 + 4608}, {2<<20 + 512, 2<<20 + 1024}},
	"neighbours":        {{4096, 5000}, {5000, 6000}, {6000, 300000}},
	"across the chunks": {{1<<20 - 5000, 1<<20 + 5000}, {2<<20 - 1, 2<<20 + 3<<18}},
	"the end":           {{3 << 20, layoutStoreSize}},
}

func overlapsAny(r byteRange, others []byteRange) bool {
	return slices.ContainsFunc(others, func(o byteRange) bool { return r.from < o.to && o.from < r.to })
}

func TestCopyTo(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			v := l.open(t, newStore(layoutStoreSize), Options{ReadOnly: true})
			out := make(memory, v.Size())
			m := &meter{t: t, total: v.Size()}
			if err := v.CopyTo(background, out, false, m.report); err != nil {
				t.Fatal(err)
			}
			m.finish(v.Size())
			if !bytes.Equal(out, readAll(t, v, v.Size())) {
				t.Error("what was copied out is not the volume")
			}
		})
	}
}

// TestCopyToSparse: of what lies in holes of the store nothing is written, all
// else is there.
func TestCopyToSparse(t *testing.T) {
	for _, l := range layouts {
		for name, data := range patterns {
			t.Run(l.name+"/"+name, func(t *testing.T) {
				v := l.open(t, &patchy{Store: newStore(layoutStoreSize), data: data}, Options{ReadOnly: true})
				want := readAll(t, v, v.Size())
				inHoles := 0
				for at := int64(0); at < v.Size(); at += sparseUnit {
					end := min(at+sparseUnit, v.Size())
					isData := slices.ContainsFunc(l.extents, func(e extent) bool {
						from, to := max(at, e.start)-e.start+e.offset, min(end, e.start+e.size)-e.start+e.offset
						return from < to && overlapsAny(byteRange{from, to}, data)
					})
					if !isData {
						clear(want[at:end])
						inHoles++
					}
				}
				if isAll := name == "all" || name == "beyond the end"; isAll != (inHoles == 0) {
					t.Fatalf("%d units in holes", inHoles)
				}
				out := make(memory, v.Size())
				m := &meter{t: t, total: v.Size()}
				if err := v.CopyTo(background, out, true, m.report); err != nil {
					t.Fatal(err)
				}
				m.finish(v.Size())
				if !bytes.Equal(out, want) {
					t.Error("what was copied out is not the volume with zeros for holes")
				}
			})
		}
	}
}

// TestCopyToReadsNoHoles: what would be noise is not even decrypted.
func TestCopyToReadsNoHoles(t *testing.T) {
	s := &patchy{Store: newStore(layoutStoreSize), data: []byteRange{{8192, 12288}, {2 << 20, 2<<20 + 4096}}}
	v := layouts[0].open(t, s, Options{ReadOnly: true})
	if err := v.CopyTo(background, make(memory, v.Size()), true, nil); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(s.read, func(a, b byteRange) int { return int(a.from - b.from) })
	if !slices.Equal(s.read, s.data) {
		t.Errorf("read: %v, want %v", s.read, s.data)
	}
}

// written remembers where something was written.
type written struct {
	mu     sync.Mutex
	ranges []byteRange
}

func (w *written) WriteAt(p []byte, off int64) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ranges = append(w.ranges, byteRange{off, off + int64(len(p))})
	return len(p), nil
}

// TestCopyToWritesNoZeros: neither where the plaintext is zero.
func TestCopyToWritesNoZeros(t *testing.T) {
	v := layouts[0].open(t, newStore(layoutStoreSize), Options{})
	if err := v.Fill(background, nil); err != nil {
		t.Fatal(err)
	}
	end := v.Size() - 512 // the last unit is only that long
	for _, at := range []int64{0, 3*sparseUnit + 17, 4 * sparseUnit, end} {
		if _, err := v.WriteAt([]byte{1}, at); err != nil {
			t.Fatal(err)
		}
	}
	w := &written{}
	if err := v.CopyTo(background, w, true, nil); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(w.ranges, func(a, b byteRange) int { return int(a.from - b.from) })
	if want := []byteRange{{0, sparseUnit}, {3 * sparseUnit, 5 * sparseUnit}, {end, end + 512}}; !slices.Equal(w.ranges, want) {
		t.Errorf("written: %v, want %v", w.ranges, want)
	}
}

type writerAtFunc func(p []byte, off int64) (int, error)

func (f writerAtFunc) WriteAt(p []byte, off int64) (int, error) { return f(p, off) }

func TestCopyToErrors(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		store := newStore(layoutStoreSize)
		v := layouts[0].open(t, store, Options{})
		full := writerAtFunc(func(p []byte, off int64) (int, error) { return 0, syscall.ENOSPC })
		if err := v.CopyTo(background, full, sparse, nil); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("sparse %v, full: got %v", sparse, err)
		}
		short := writerAtFunc(func(p []byte, off int64) (int, error) { return len(p) - 1, nil })
		if err := v.CopyTo(background, short, sparse, nil); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("sparse %v, short: got %v", sparse, err)
		}
		store.Fault = func(op faultstore.Op) error {
			if op.Off+int64(op.Len) > 2<<20 {
				return syscall.EIO
			}
			return nil
		}
		if err := v.CopyTo(background, make(memory, v.Size()), sparse, nil); !errors.Is(err, syscall.EIO) {
			t.Errorf("sparse %v, read fails: got %v", sparse, err)
		}
	}
	lost := errors.New("lost")
	v := layouts[0].open(t, &unsure{newStore(layoutStoreSize), lost}, Options{})
	if err := v.CopyTo(background, make(memory, v.Size()), true, nil); !errors.Is(err, lost) {
		t.Errorf("the holes are not found: got %v", err)
	}
	source := &unsure{newStore(2 * chunkSize), lost}
	if err := v.CopyIn(background, source, 2*chunkSize, nil); !errors.Is(err, lost) {
		t.Errorf("the holes of the source are not found: got %v", err)
	}
}

// unsure cannot tell where its data are.
type unsure struct {
	Store
	err error
}

func (s *unsure) NextData(int64) (from, to int64, err error) { return 0, 0, s.err }

// TestCopyInOfHoles: chunks that are holes of the source are not read, and zeros
// in the volume.
func TestCopyInOfHoles(t *testing.T) {
	l := layouts[0]
	for name, data := range patterns {
		t.Run(name, func(t *testing.T) {
			content := make([]byte, l.size())
			for _, d := range data {
				for i := d.from; i < min(d.to, l.size()); i++ {
					content[i] = byte(i%255) + 1
				}
			}
			source := &patchy{Store: faultstore.New(content), data: data}
			v := l.open(t, newStore(layoutStoreSize), Options{})
			if err := v.CopyIn(background, source, l.size(), nil); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(readAll(t, v, v.Size()), content) {
				t.Error("the volume is not what was copied in")
			}
			for _, r := range source.read {
				if r.from >= chunkSize && r.to <= l.size() && !overlapsAny(r, data) {
					t.Errorf("a hole was read: %v", r)
				}
			}
		})
	}
}

// TestFileNextData, on a file system that has holes.
func TestFileNextData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{128 << 10, 640 << 10} {
		if _, err := f.WriteAt(make([]byte, 64<<10), at); err != nil {
			t.Fatal(err)
		}
	}
	file, err := PeekFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if from, _, err := file.NextData(0); err != nil || from != 128<<10 {
		skip.Skip(t, fmt.Sprintf("this file system has no holes: data from %d (%v)", from, err))
	}
	for _, c := range []struct{ off, from, to int64 }{
		{0, 128 << 10, 192 << 10},
		{130 << 10, 130 << 10, 192 << 10},
		{192 << 10, 640 << 10, 704 << 10},
	} {
		if from, to, err := file.NextData(c.off); from != c.from || to != c.to || err != nil {
			t.Errorf("NextData(%d) = %d, %d, %v; want %d, %d", c.off, from, to, err, c.from, c.to)
		}
	}
	for _, off := range []int64{704 << 10, 1 << 20, 1 << 30} {
		if from, to, err := file.NextData(off); !errors.Is(err, io.EOF) {
			t.Errorf("NextData(%d) = %d, %d, %v; want EOF", off, from, to, err)
		}
	}
}
