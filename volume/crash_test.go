package volume

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
)

// subject is a container whose header is changed while everything fails.
type subject struct {
	format    string
	params    Params
	whole     *faultstore.Store // of header and payload
	volumeKey []byte

	payloadOffset int64
	payload       []byte
	opened        map[[sha256.Size]byte]bool // what opens has found
}

// The passphrases of a subject: those of its slots 0 and 1, and another one.
var (
	oldPassphrase   = []byte("old")
	otherPassphrase = []byte("other")
	newPassphrase   = []byte("new")
)

// newSubject makes a container with two keys.
func newSubject(t *testing.T, p Params) *subject {
	t.Helper()
	s := format(t, p, 3*512)
	key := unlocked(t, s)
	for slot, passphrase := range [][]byte{oldPassphrase, otherPassphrase} {
		if _, err := AddKey(background, s, key, passphrase, slot, quickKey); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveKey(background, s, p.Slot, false); err != nil {
		t.Fatal(err)
	}
	offset := headerOf(t, s).PayloadOffset
	return &subject{
		format: p.Type, params: p, whole: s, volumeKey: bytes.Clone(key.Bytes.Bytes()),
		payloadOffset: offset, payload: s.Bytes()[offset:],
		opened: map[[sha256.Size]byte]bool{},
	}
}

// copy returns the container on a disk of its own.
func (c *subject) copy() *faultstore.Store { return faultstore.New(c.whole.Bytes()) }

// key returns the volume key as the passphrase gives it, until the test ends.
func keyOf(t *testing.T, s Store, passphrase []byte) *Key {
	t.Helper()
	key, err := Unlock(background, Attached(s), passphrase, AnySlot, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(key.Close)
	return key
}

// opens reports whether the passphrase gives the volume key. The key slots are
// tried once for each content of them that the header leads to.
func (c *subject) opens(t *testing.T, s Store, passphrase []byte) bool {
	t.Helper()
	tried := hashOfSlots(t, s, passphrase)
	opens, isKnown := c.opened[tried]
	if !isKnown {
		opens = c.tryToOpen(t, s, passphrase)
		c.opened[tried] = opens && !t.Failed()
	}
	return opens
}

func (c *subject) tryToOpen(t *testing.T, s Store, passphrase []byte) bool {
	t.Helper()
	key, err := Unlock(background, Attached(s), passphrase, AnySlot, nil)
	if errors.Is(err, ErrPassphrase) || errors.Is(err, ErrNoKeySlot) {
		return false
	}
	if err != nil {
		t.Errorf("%q: %v", passphrase, err)
		return false
	}
	defer key.Close()
	if !bytes.Equal(key.Bytes.Bytes(), c.volumeKey) {
		t.Errorf("%q opens with another key", passphrase)
	}
	return true
}

// hashOfSlots returns the hash of all that the result of Unlock depends on: what
// the header says, the material of the key slots, and the passphrase.
func hashOfSlots(t *testing.T, s Store, passphrase []byte) (sum [sha256.Size]byte) {
	t.Helper()
	hash := sha256.New()
	hash.Write(passphrase)
	h, err := ReadHeader(Attached(s))
	if err := json.NewEncoder(hash).Encode([]any{h, fmt.Sprint(err)}); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		for _, slot := range h.Slots {
			if slot.State == SlotEnabled {
				io.Copy(hash, io.NewSectionReader(s, slot.MaterialOffset, slot.MaterialSize))
			}
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// samePayload checks that the bytes behind the header are what they were.
func (c *subject) samePayload(t *testing.T, s Store, when string) {
	t.Helper()
	if got := readAll(t, io.NewSectionReader(s, c.payloadOffset, math.MaxInt64), int64(len(c.payload))); !bytes.Equal(got, c.payload) {
		t.Errorf("%s: the payload has changed", when)
	}
}

// update is a change of a header, and what must hold however it ends.
type update struct {
	name    string
	prepare func(t *testing.T, c *subject, s *faultstore.Store) // before it, undisturbed; may be nil
	before  []byte                                              // the disk then
	run     func(s Store, c *subject) error
	always  [][]byte                                            // passphrases that open at any time
	oneOf   [][]byte                                            // at least one of them does, if there are any
	done    func(t *testing.T, c *subject, s *faultstore.Store) // when it has succeeded
}

// holds checks what must hold.
func (u *update) holds(t *testing.T, c *subject, s *faultstore.Store, when string) {
	t.Helper()
	for _, passphrase := range u.always {
		if !c.opens(t, s, passphrase) {
			t.Errorf("%s: %q opens nothing", when, passphrase)
		}
	}
	any := len(u.oneOf) == 0
	for _, passphrase := range u.oneOf {
		any = any || c.opens(t, s, passphrase)
	}
	if !any {
		t.Errorf("%s: none of %q opens", when, u.oneOf)
	}
	c.samePayload(t, s, when)
}

// mostDisks is how many states of the disk are looked at after each power cut.
const mostDisks = 16

// TestPowerCutsInUpdates cuts the power in each write and sync of each update.
// The disk may have kept any of the sectors that were not synced.
func TestPowerCutsInUpdates(t *testing.T) {
	forEachUpdate(t, func(t *testing.T, c *subject, u *update) {
		random := newRandom(t)
		for cut := 1; ; cut++ {
			s, finished := u.runWithFault(t, c, cut, faultstore.ErrPower, faultstore.Write, faultstore.Sync)
			u.holdAfterPowerCuts(t, c, s, random, fmt.Sprintf("power cut in operation %d", cut))
			if finished {
				if cut < 3 {
					t.Errorf("it has only %d writes and syncs", cut-1)
				}
				u.done(t, c, s.AfterPowerCut(faultstore.Oldest))
				return
			}
			if t.Failed() {
				return
			}
		}
	})
}

func (u *update) holdAfterPowerCuts(t *testing.T, c *subject, s *faultstore.Store, random *rand.Rand, when string) {
	t.Helper()
	for disk := range s.AfterPowerCuts(mostDisks, random) {
		u.holds(t, c, disk, when)
	}
}

// TestFaultsInUpdates has each operation of each update fail, and then perhaps
// the power.
func TestFaultsInUpdates(t *testing.T) {
	forEachUpdate(t, func(t *testing.T, c *subject, u *update) {
		random := newRandom(t)
		for _, fault := range []error{syscall.EIO, syscall.ENOSPC, faultstore.Short(700)} {
			kinds := []faultstore.Kind{faultstore.Write}
			if fault == syscall.EIO {
				kinds = append(kinds, faultstore.Read, faultstore.Sync)
			}
			for failing := 1; ; failing++ {
				s, finished := u.runWithFault(t, c, failing, fault, kinds...)
				u.holds(t, c, s, fmt.Sprintf("%v in operation %d", fault, failing))
				if disks := s.AfterPowerCuts(2, random); !finished {
					for disk := range disks {
						u.holds(t, c, disk, fmt.Sprintf("%v in operation %d, then a power cut", fault, failing))
					}
				}
				if finished || t.Failed() {
					break
				}
			}
		}
	})
}

// runWithFault runs the update with a fault in the nth operation of these kinds.
// It reports whether there were so many.
func (u *update) runWithFault(t *testing.T, c *subject, nth int, fault error, kinds ...faultstore.Kind) (s *faultstore.Store, finished bool) {
	t.Helper()
	s = faultstore.New(bytes.Clone(u.before))
	happened, isRead := false, false
	count := 0
	s.Fault = func(op faultstore.Op) error {
		for _, kind := range kinds {
			if op.Kind == kind {
				count++
				if count == nth {
					happened, isRead = true, op.Kind == faultstore.Read
					return fault
				}
			}
		}
		return nil
	}
	err := u.run(s, c)
	s.Fault = nil
	var short faultstore.Short
	switch {
	case !happened && err != nil:
		t.Fatalf("without any fault: %v", err)
	case happened && err == nil && !isRead && !errors.As(fault, &short):
		// One copy of a header is enough to read.
		t.Errorf("%v in operation %d: it says nothing", fault, nth)
	}
	return s, !happened
}

func forEachUpdate(t *testing.T, test func(t *testing.T, c *subject, u *update)) {
	for _, c := range subjects(t) {
		for _, u := range updates {
			t.Run(c.format+"/"+u.name, func(t *testing.T) {
				s := c.copy()
				if u.prepare != nil {
					u.prepare(t, c, s)
				}
				u.before = s.Bytes()
				test(t, c, &u)
			})
		}
	}
}

// subjects returns a container of each format.
func subjects(t *testing.T) []*subject {
	var all []*subject
	for _, p := range []Params{quick, quick2} {
		p.Slot = 2
		all = append(all, newSubject(t, p))
	}
	return all
}

// opensWith checks which passphrases open.
func opensWith(passphrases ...[]byte) func(t *testing.T, c *subject, s *faultstore.Store) {
	return func(t *testing.T, c *subject, s *faultstore.Store) {
		t.Helper()
		for _, passphrase := range [][]byte{oldPassphrase, otherPassphrase, newPassphrase} {
			want := false
			for _, p := range passphrases {
				want = want || bytes.Equal(p, passphrase)
			}
			if got := c.opens(t, s, passphrase); got != want {
				t.Errorf("at the end: %q opens: %v, want %v", passphrase, got, want)
			}
		}
	}
}
