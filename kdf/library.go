package kdf

import (
	"context"
	"encoding"
	"hash"
	"slices"
	"unsafe"

	"golang.org/x/crypto/pbkdf2"

	"serpcrypt/internal/hashes"
	"serpcrypt/internal/secret"
)

// deriveInTurn does one job after another by x/crypto.
func deriveInTurn(ctx context.Context, newHash func() hash.Hash, jobs []Job, order []int, ready func([]Derived) error) error {
	for _, i := range order {
		key, err := deriveByLibrary(ctx, newHash, jobs[i])
		if err != nil {
			return err
		}
		err = ready([]Derived{{i, key.Bytes()}})
		key.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// stopped is what a watched hash panics with: the library has no other way out.
type stopped struct{}

func deriveByLibrary(ctx context.Context, newHash func() hash.Hash, job Job) (key *secret.Buffer, err error) {
	w := &watch{ctx: ctx}
	defer w.wipe()
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case stopped:
			key, err = nil, ctx.Err()
		default:
			panic(reason)
		}
	}()
	w.look()
	salt := slices.Clone(job.Salt) // will be wiped with all that the hash is given
	derived := pbkdf2.Key(job.Password, salt, job.Iterations, job.KeyLen, func() hash.Hash { return w.add(newHash()) })
	return secret.Copy(derived)
}

// watch looks after the hashes that the library makes: it stops them when the
// context is done, and knows all memory that has passed through them.
type watch struct {
	ctx    context.Context
	sums   int // that were made
	hashes []hash.Hash
	seen   [][]byte

	last    *byte // what was remembered in the last call
	lastLen int
}

// lookEvery so many sums, of which an iteration makes two, is often: within
// some tenths of a millisecond.
const lookEvery = 512

func (w *watch) look() {
	if w.ctx.Err() != nil {
		panic(stopped{})
	}
}

func (w *watch) add(h hash.Hash) hash.Hash {
	w.hashes = append(w.hashes, h)
	watched := watchedHash{h, w}
	if state, ok := h.(saved); ok {
		return &watchedSavedHash{watched, state}
	}
	return &watched
}

// remember is called with the same few places over and over, and most of the
// time with that of the last call.
func (w *watch) remember(p []byte) {
	if unsafe.SliceData(p) == w.last && len(p) <= w.lastLen {
		return
	}
	w.last, w.lastLen = unsafe.SliceData(p), len(p)
	for _, s := range w.seen {
		if unsafe.SliceData(s) == unsafe.SliceData(p) && len(s) >= len(p) {
			return
		}
	}
	w.seen = append(w.seen, p)
}

// wipe overwrites HMAC's pads and states, the outcomes of iterations and the
// derived key.
func (w *watch) wipe() {
	for _, p := range w.seen {
		secret.Wipe(p)
	}
	for _, h := range w.hashes {
		hashes.Wipe(h)
	}
}

// saved is a hash whose state HMAC can save once and restore in each iteration.
// With any other, such as ripemd160, it hashes its pads anew.
type saved interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

type watchedHash struct {
	hash.Hash
	watch *watch
}

type watchedSavedHash struct {
	watchedHash
	saved
}

func (h *watchedHash) Write(p []byte) (int, error) {
	h.watch.remember(p)
	return h.Hash.Write(p)
}

func (h *watchedHash) Sum(b []byte) []byte {
	if h.watch.sums++; h.watch.sums%lookEvery == 0 {
		h.watch.look()
	}
	sum := h.Hash.Sum(b)
	h.watch.remember(sum[:cap(sum)])
	return sum
}

func (h *watchedSavedHash) MarshalBinary() ([]byte, error) {
	state, err := h.saved.MarshalBinary()
	h.watch.remember(state)
	return state, err
}
