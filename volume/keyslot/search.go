package keyslot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
)

// Error is what keeps a key slot from being tried.
type Error struct {
	Slot int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("key slot %d: %v", e.Slot, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Derivation is a work that makes the keys of slots ready, one after another or
// several at once. It ends with the error of the context or of ready.
type Derivation struct {
	Slots  []int
	Derive func(ctx context.Context, ready func([]kdf.Derived) error) error // Derived.Job counts in Slots
}

// PBKDF2 returns the derivations of slots' keys by PBKDF2 with one hash: a share
// of them for each of the processor's cores. jobs has one for each slot.
func PBKDF2(hash string, slots []int, jobs []kdf.Job) []Derivation {
	cores := runtime.GOMAXPROCS(0)
	var shares []Derivation
	for core := range min(cores, len(slots)) {
		var own []int
		var ownJobs []kdf.Job
		for i := core; i < len(slots); i += cores {
			own, ownJobs = append(own, slots[i]), append(ownJobs, jobs[i])
		}
		shares = append(shares, Derivation{own, func(ctx context.Context, ready func([]kdf.Derived) error) error {
			return kdf.Derive(ctx, hash, ownJobs, ready)
		}})
	}
	return shares
}

// Container is where key slots are looked for.
type Container struct {
	Store    io.ReaderAt
	Material func(slot int) *Material
	// Check returns which of the keys, each out of the slot in the same place,
	// is the volume key, or -1.
	Check func(ctx context.Context, slots []int, keys [][]byte) (right int, err error)
}

// Search does all derivations side by side and returns which slot opens first,
// with the volume key out of it, or a nil key if none does. As soon as a slot's
// key is ready it is tried, before its derivation goes on.
//
// The error is that of ctx if it is done and no slot has opened. It may be
// joined of several: *Error for slots that cannot be tried, if no other opens,
// and those of Check.
func (c *Container) Search(ctx context.Context, work []Derivation) (slot int, key *secret.Buffer, err error) {
	s := &search{c: c}
	s.ctx, s.end = context.WithCancel(ctx)
	defer s.end()
	var all sync.WaitGroup
	for _, d := range work {
		all.Go(func() {
			err := d.Derive(s.ctx, func(ready []kdf.Derived) error { return s.try(d.Slots, ready) })
			if err != nil {
				s.fail(err)
			}
		})
	}
	all.Wait()
	switch {
	case s.key != nil:
		return s.slot, s.key, nil
	case ctx.Err() != nil:
		return 0, nil, ctx.Err()
	}
	return 0, nil, s.errs
}

// search is what the derivations share.
type search struct {
	c   *Container
	ctx context.Context
	end context.CancelFunc // for all, as a slot has opened

	mu   sync.Mutex
	slot int
	key  *secret.Buffer // nil until a slot has opened
	errs error
}

func (s *search) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = errors.Join(s.errs, err)
}

// try opens the slots whose keys are ready.
func (s *search) try(slots []int, ready []kdf.Derived) error {
	var opened []int
	var keys [][]byte
	for _, d := range ready {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		slot := slots[d.Job]
		key, err := s.c.Material(slot).Open(s.c.Store, d.Key)
		if err != nil {
			s.fail(&Error{slot, err})
			continue
		}
		defer key.Close()
		opened, keys = append(opened, slot), append(keys, key.Bytes())
	}
	right, err := s.c.Check(s.ctx, opened, keys)
	if err != nil || right < 0 {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == nil {
		if s.key, err = secret.Copy(keys[right]); err != nil {
			return err
		}
		s.slot = opened[right]
	}
	s.end()
	return nil
}
