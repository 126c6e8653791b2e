package volume

import (
	"bytes"
	"testing"
	"time"

	"serpcrypt/internal/faultstore"
)

// A pausingStore stops in the middle of a write to a place.
type pausingStore struct {
	*faultstore.Store
	place         int64
	half, release chan struct{}
}

func (s *pausingStore) WriteAt(p []byte, off int64) (int, error) {
	if off != s.place {
		return s.Store.WriteAt(p, off)
	}
	n, err := s.Store.WriteAt(p[:len(p)/2], off)
	if err != nil {
		return n, err
	}
	close(s.half)
	<-s.release
	rest, err := s.Store.WriteAt(p[n:], off+int64(n))
	return n + rest, err
}

// TestReadAcrossStripes: a read that begins in another stripe waits as well for
// a sector that is being rewritten for the sake of one byte.
func TestReadAcrossStripes(t *testing.T) {
	l := layouts[1]
	const sector = 4096
	store := &pausingStore{Store: newStore(layoutStoreSize), half: make(chan struct{}), release: make(chan struct{})}
	v := l.open(t, store, Options{})
	if _, err := v.WriteAt(bytes.Repeat([]byte{7}, 2*sector), stripeSize-sector); err != nil {
		t.Fatal(err)
	}
	store.place = l.extents[0].offset + stripeSize
	written := make(chan error, 1)
	go func() {
		_, err := v.WriteAt([]byte{9}, stripeSize)
		written <- err
	}()
	<-store.half
	got := make([]byte, 2*sector)
	read := make(chan error, 1)
	go func() {
		_, err := v.ReadAt(got, stripeSize-sector)
		read <- err
	}()
	select {
	case err := <-read:
		read <- err
	case <-time.After(50 * time.Millisecond): // it waits
	}
	close(store.release)
	for _, done := range []chan error{read, written} {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	got[sector] = 7
	if !bytes.Equal(got, bytes.Repeat([]byte{7}, len(got))) {
		t.Error("bytes that nobody wrote have changed")
	}
}
