package volume

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"serpcrypt/internal/faultstore"
)

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
