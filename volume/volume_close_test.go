package volume

import (
	"bytes"
	"errors"
	"io/fs"
	"sync"
	"testing"

	"serpcrypt/internal/faultstore"
)

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
		if err != ErrClosed || !errors.Is(err, fs.ErrClosed) {
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
