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
	"testing/iotest"

	"serpcrypt/internal/faultstore"
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
	l := layouts[0]
	source := randomBytes(newRandom(t), int(l.size()))
	before := readAll(t, l.open(t, newStore(layoutStoreSize), Options{}), l.size())
	readers := map[string]func(io.Reader) io.Reader{
		"whole":         func(r io.Reader) io.Reader { return r },
		"in halves":     iotest.HalfReader,
		"data with EOF": iotest.DataErrReader,
	}
	for name, reader := range readers {
		for n := range lengths(l.size()) {
			for _, size := range []int64{n, -1} {
				if name != "whole" && n != 513 && n != chunkSize+1 {
					continue
				}
				t.Run(fmt.Sprintf("%s,len=%d,size=%d", name, n, size), func(t *testing.T) {
					v := l.open(t, newStore(layoutStoreSize), Options{})
					want := slices.Concat(source[:n], before[n:])
					m := &meter{t: t, total: size}
					got, err := v.CopyIn(background, reader(bytes.NewReader(source[:n])), size, m.report)
					if err != nil || got != n {
						t.Fatalf("copied %d, %v", got, err)
					}
					if n > 0 {
						m.finish(n)
					}
					if !bytes.Equal(readAll(t, v, v.Size()), want) {
						t.Error("the volume is not what was copied in, and behind it what was there before")
					}
				})
			}
		}
	}
}

func TestCopyInErrors(t *testing.T) {
	l := layouts[0]
	size := l.size()
	broken := errors.New("broken")
	long := make([]byte, size+1)
	for _, c := range []struct {
		name   string
		source io.Reader
		size   int64
		want   error
	}{
		{"too long", bytes.NewReader(long), size + 1, ErrTooLong},
		{"too long, size not known", bytes.NewReader(long), -1, ErrTooLong},
		{"longer than said", bytes.NewReader(long), 100, ErrTooLong},
		{"longer than said, which fits exactly", bytes.NewReader(long), size, ErrTooLong},
		{"shorter than said", bytes.NewReader(long[:99]), 100, io.ErrUnexpectedEOF},
		{"shorter than said by chunks", bytes.NewReader(long[:chunkSize]), 2 * chunkSize, io.ErrUnexpectedEOF},
		{"empty", bytes.NewReader(nil), 1, io.ErrUnexpectedEOF},
		{"broken", iotest.ErrReader(broken), -1, broken},
		{"broken later", io.MultiReader(bytes.NewReader(long[:chunkSize+5]), iotest.ErrReader(broken)), 3 * chunkSize, broken},
		{"broken at the end", io.MultiReader(bytes.NewReader(long[:100]), iotest.ErrReader(broken)), 100, broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := newStore(layoutStoreSize)
			v := l.open(t, store, Options{})
			before := store.Bytes()
			if _, err := v.CopyIn(background, c.source, c.size, nil); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if c.size > size && !bytes.Equal(store.Bytes(), before) {
				t.Error("what cannot fit was written in part")
			}
		})
	}
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
	if _, err := v.CopyIn(background, bytes.NewReader(make([]byte, v.Size())), v.Size(), nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
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
	endless := readerFunc(func(p []byte) (int, error) { return len(p), nil })
	for name, work := range map[string]func(ctx context.Context, progress Progress) error{
		"Fill":    v.Fill,
		"CopyIn":  func(ctx context.Context, p Progress) error { _, err := v.CopyIn(ctx, endless, -1, p); return err },
		"CopyOut": func(ctx context.Context, p Progress) error { return v.CopyOut(ctx, io.Discard, p) },
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

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
