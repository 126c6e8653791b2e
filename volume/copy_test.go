package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/fsprobe"
)

// meter is a Progress that checks what it is told.
type meter struct {
	t     *testing.T
	total int64 // expected
	calls int
	last  int64
	busy  atomic.Bool
}

func (m *meter) report(done, total int64) {
	if !m.busy.CompareAndSwap(false, true) {
		m.t.Error("progress is reported by two at a time")
	}
	defer m.busy.Store(false)
	if done < m.last || total != m.total || m.calls == 0 && done != 0 {
		m.t.Errorf("progress %d of %d after %d of %d", done, total, m.last, m.total)
	}
	m.calls++
	m.last = done
}

// finish checks that all was reported.
func (m *meter) finish(want int64) {
	m.t.Helper()
	if m.last != want || m.calls < 2 {
		m.t.Errorf("progress ended at %d after %d reports, want %d", m.last, m.calls, want)
	}
}

func TestFill(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			store := newStore(layoutStoreSize)
			v := l.open(t, store, Options{})
			m := &meter{t: t, total: v.Size()}
			if err := v.Fill(background, m.report); err != nil {
				t.Fatal(err)
			}
			m.finish(v.Size())
			if !bytes.Equal(readAll(t, v, v.Size()), make([]byte, v.Size())) {
				t.Error("the volume is not zero")
			}
			content := store.Bytes()
			for _, e := range l.extents {
				if bytes.Contains(content[e.offset:e.offset+e.size], bytes.Repeat([]byte{0xA5}, 64)) {
					t.Errorf("the segment at %d was not all filled", e.start)
				}
			}
		})
	}
}

func TestFillStopsAtTheFirstError(t *testing.T) {
	store := newStore(layoutStoreSize)
	v := layouts[0].open(t, store, Options{})
	store.Fault = func(op faultstore.Op) error {
		if op.Off > 1<<20 {
			return syscall.ENOSPC
		}
		return nil
	}
	if err := v.Fill(background, nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
}

// lengths of what is copied in: around sectors and chunks.
func lengths(size int64) iter.Seq[int64] {
	return slices.Values([]int64{0, 1, 511, 512, 513, chunkSize - 1, chunkSize, chunkSize + 1, 2*chunkSize + 700, size - 1, size})
}

func TestCopyIn(t *testing.T) {
	source := randomBytes(newRandom(t), layoutStoreSize)
	for _, l := range layouts {
		before := readAll(t, l.open(t, newStore(layoutStoreSize), Options{}), l.size())
		for n := range lengths(l.size()) {
			if n > l.size() {
				continue
			}
			t.Run(fmt.Sprintf("%s,len=%d", l.name, n), func(t *testing.T) {
				store := newStore(layoutStoreSize)
				v := l.open(t, store, Options{})
				m := &meter{t: t, total: n}
				if err := v.CopyIn(background, bytes.NewReader(source[:n]), n, m.report); err != nil {
					t.Fatal(err)
				}
				m.finish(n)
				after := l.open(t, store.AfterPowerCut(faultstore.Oldest), Options{})
				if !bytes.Equal(readAll(t, after, v.Size()), slices.Concat(source[:n], before[n:])) {
					t.Error("what is on the disk is not what was copied in, and behind it what was there before")
				}
			})
		}
	}
}

func TestCopyInErrors(t *testing.T) {
	l := layouts[0]
	size := l.size()
	broken := errors.New("broken")
	long := make([]byte, size+1)
	for _, c := range []struct {
		name    string
		source  io.ReaderAt
		size    int64
		want    error
		touched bool // the volume is, by then
	}{
		{"too long", bytes.NewReader(long), size + 1, ErrTooLong, false},
		{"longer than said", bytes.NewReader(long), 100, ErrTooLong, true},
		{"longer than said, which fits exactly", bytes.NewReader(long), size, ErrTooLong, true},
		{"shorter than said", bytes.NewReader(long[:99]), 100, io.ErrUnexpectedEOF, false},
		{"shorter than said by chunks", bytes.NewReader(long[:chunkSize]), 2 * chunkSize, io.ErrUnexpectedEOF, true},
		{"empty", bytes.NewReader(nil), 1, io.ErrUnexpectedEOF, false},
		{"broken", brokenFrom(0, broken), size, broken, false},
		{"broken later", brokenFrom(chunkSize+5, broken), size, broken, true},
		{"broken at the end", brokenFrom(size, broken), size, broken, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := newStore(layoutStoreSize)
			v := l.open(t, store, Options{})
			before := store.Bytes()
			err := v.CopyIn(background, c.source, c.size, nil)
			if !errors.Is(err, c.want) || errors.Is(err, ErrUnfinished) != c.touched {
				t.Errorf("got %v, want %v, and unfinished: %v", err, c.want, c.touched)
			}
			if !c.touched && !bytes.Equal(store.Bytes(), before) {
				t.Error("something was written")
			}
		})
	}
}

type readerAtFunc func(p []byte, off int64) (int, error)

func (f readerAtFunc) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// brokenFrom is a source of zeros without end that fails from a byte on.
func brokenFrom(at int64, err error) io.ReaderAt {
	return readerAtFunc(func(p []byte, off int64) (int, error) {
		if off+int64(len(p)) > at {
			return 0, err
		}
		clear(p)
		return len(p), nil
	})
}

func TestCopyInToAFullDisk(t *testing.T) {
	store := newStore(layoutStoreSize)
	v := layouts[0].open(t, store, Options{})
	store.Fault = func(op faultstore.Op) error {
		if op.Kind == faultstore.Write && op.Off > 2<<20 {
			return syscall.ENOSPC
		}
		return nil
	}
	err := v.CopyIn(background, bytes.NewReader(make([]byte, v.Size())), v.Size(), nil)
	if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, ErrUnfinished) {
		t.Errorf("got %v, want ENOSPC and unfinished", err)
	}
	looksUnfinished(t, v)
}

// looksUnfinished checks what is found in a volume, and that nothing else is.
func looksUnfinished(t *testing.T, v *Volume) {
	t.Helper()
	all, err := fsprobe.All(v)
	if err != nil || len(all) != 1 || all[0].Name != fsprobe.UnfinishedImport {
		t.Errorf("found inside: %v (%v), want an unfinished import", all, err)
	}
}

func TestCopyOut(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			v := l.open(t, newStore(layoutStoreSize), Options{ReadOnly: true})
			var out bytes.Buffer
			m := &meter{t: t, total: v.Size()}
			if err := v.CopyOut(background, &out, m.report); err != nil {
				t.Fatal(err)
			}
			m.finish(v.Size())
			if !bytes.Equal(out.Bytes(), readAll(t, v, v.Size())) {
				t.Error("what was copied out is not the volume")
			}
		})
	}
}

// failingWriter takes some bytes, then calls a function.
type failingWriter struct {
	space int
	full  func() error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.space -= len(p); w.space < 0 {
		return 0, w.full()
	}
	return len(p), nil
}

func TestCopyOutErrors(t *testing.T) {
	store := newStore(layoutStoreSize)
	v := layouts[0].open(t, store, Options{})
	for _, space := range []int{0, chunkSize, 3 * chunkSize} {
		w := &failingWriter{space, func() error { return syscall.EPIPE }}
		if err := v.CopyOut(background, w, nil); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write fails after %d bytes: got %v, want EPIPE", space, err)
		}
	}
	for _, bad := range []int64{0, chunkSize, 3 * chunkSize} {
		store.Fault = func(op faultstore.Op) error {
			if at := bad + layouts[0].extents[0].offset; op.Off <= at && at < op.Off+int64(op.Len) {
				return syscall.EIO
			}
			return nil
		}
		var out bytes.Buffer
		if err := v.CopyOut(background, &out, nil); !errors.Is(err, syscall.EIO) {
			t.Errorf("read fails at %d: got %v, want EIO", bad, err)
		}
		if int64(out.Len()) > bad {
			t.Errorf("read fails at %d: %d bytes came out", bad, out.Len())
		}
	}
}

func TestLongWorkStopsWhenCancelled(t *testing.T) {
	v := layouts[0].open(t, newStore(layoutStoreSize), Options{})
	endless := readerAtFunc(func(p []byte, _ int64) (int, error) { return len(p), nil })
	for name, work := range map[string]func(ctx context.Context, progress Progress) error{
		"Fill":    v.Fill,
		"CopyIn":  func(ctx context.Context, p Progress) error { return v.CopyIn(ctx, endless, v.Size(), p) },
		"CopyOut": func(ctx context.Context, p Progress) error { return v.CopyOut(ctx, io.Discard, p) },
		"CopyTo":  func(ctx context.Context, p Progress) error { return v.CopyTo(ctx, make(memory, v.Size()), false, p) },
	} {
		for _, after := range []int64{0, 1} {
			ctx, cancel := context.WithCancel(background)
			err := work(ctx, func(done, total int64) {
				if done >= after {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, cancelled after %d bytes: got %v", name, after, err)
			}
			cancel()
		}
	}
}
