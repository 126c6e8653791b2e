package kdf

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"hash"
	"testing"

	"serpcrypt/hash/sha1"
)

const firstOfRFC6070 = "0c60c80f961f0e71f3a9b524af6012062fe037a6"

func jobOfRFC6070(keyLen int) Job { return Job{[]byte("password"), []byte("salt"), 1, keyLen} }

// spy makes hashes that remember the memory of all that they are given and
// give, and of their own states.
type spy struct {
	pads, sums, states [][]byte
	hashes             []hash.Hash
	onSum              func() // may be nil
}

type spyHash struct {
	hash.Hash
	spy *spy
}

func (s *spy) newHash() hash.Hash {
	h := sha1.New()
	s.hashes = append(s.hashes, h)
	return &spyHash{h, s}
}

func (h *spyHash) Write(p []byte) (int, error) {
	if len(p) == h.BlockSize() {
		h.spy.pads = append(h.spy.pads, p)
	}
	return h.Hash.Write(p)
}

func (h *spyHash) Sum(b []byte) []byte {
	if h.spy.onSum != nil {
		h.spy.onSum()
	}
	sum := h.Hash.Sum(b)
	h.spy.sums = append(h.spy.sums, sum[:cap(sum)])
	return sum
}

func (h *spyHash) MarshalBinary() ([]byte, error) {
	state, err := h.Hash.(encoding.BinaryMarshaler).MarshalBinary()
	h.spy.states = append(h.spy.states, state)
	return state, err
}

func (h *spyHash) UnmarshalBinary(state []byte) error {
	return h.Hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(state)
}

// checkWiped looks at all that has been seen.
func (s *spy) checkWiped(t *testing.T) {
	t.Helper()
	for name, all := range map[string][][]byte{"pad": s.pads, "sum": s.sums, "state": s.states} {
		if len(all) < 2 {
			t.Errorf("only %d of kind %s have been seen", len(all), name)
		}
		for _, b := range all {
			if !bytes.Equal(b, make([]byte, len(b))) {
				t.Errorf("%s left behind: %x", name, b)
			}
		}
	}
	zeros := sha1.New()
	zeros.Write(make([]byte, sha1.BlockSize))
	for _, h := range s.hashes {
		if got := h.Sum(nil); !bytes.Equal(got, zeros.Sum(nil)) {
			t.Error("a hash remembers what it was given")
		}
	}
}

func TestLibraryLeavesNothing(t *testing.T) {
	var s spy
	job := jobOfRFC6070(30)
	key, err := deriveByLibrary(background, s.newHash, job)
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	if got := hex.EncodeToString(key.Bytes()[:20]); got != firstOfRFC6070 {
		t.Errorf("got %s, want %s", got, firstOfRFC6070)
	}
	s.checkWiped(t)
	if string(job.Password) != "password" || string(job.Salt) != "salt" {
		t.Errorf("the caller's password and salt are now %q and %q", job.Password, job.Salt)
	}
}

// TestLibraryIsStopped: it makes no more sums than until the next look.
func TestLibraryIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	sums := 0
	s := spy{onSum: func() {
		if sums++; sums == 10 {
			cancel()
		}
	}}
	job := jobOfRFC6070(30)
	job.Iterations = forEver
	if key, err := deriveByLibrary(ctx, s.newHash, job); key != nil || err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if sums >= lookEvery {
		t.Errorf("stopped after %d sums", sums)
	}
	s.checkWiped(t)

	s = spy{onSum: func() { t.Error("begun, though cancelled before") }}
	if _, err := deriveByLibrary(ctx, s.newHash, jobOfRFC6070(20)); err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// TestLibraryPanics: what is no cancellation is not taken for one.
func TestLibraryPanics(t *testing.T) {
	s := spy{onSum: func() { panic("other") }}
	defer func() {
		if got := recover(); got != "other" {
			t.Errorf("recovered %v", got)
		}
	}()
	deriveByLibrary(background, s.newHash, jobOfRFC6070(20))
}

func BenchmarkLibrary(b *testing.B) {
	job := Job{[]byte("password"), []byte("salt"), 10000, 32}
	for b.Loop() {
		key, err := deriveByLibrary(background, sha256.New, job)
		if err != nil {
			b.Fatal(err)
		}
		key.Close()
	}
}
