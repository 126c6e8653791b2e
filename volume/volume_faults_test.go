package volume

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
)

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
