package volume

import (
	"bytes"
	"errors"
	"slices"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks2"
)

// statedSize is a container whose header states how long its payload is.
type statedSize struct {
	t       *testing.T
	key     *Key
	content []byte // all of its store
	offset  int64  // of the payload
	data    []byte // all of the payload
}

const statedPayload = 64 << 10

// newStatedSize makes one, with some bytes behind the payload that are nobody's.
func newStatedSize(t *testing.T, behind int64) *statedSize {
	s := format(t, quick2, statedPayload+behind)
	found, err := luks2.Read(s, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	found.Header.Segments[0].Size = statedPayload
	if err := found.Header.Save(s); err != nil {
		t.Fatal(err)
	}
	data := randomBytes(newRandom(t), statedPayload)
	v := open(t, s, Options{})
	if v.Size() != statedPayload {
		t.Fatalf("the volume has %d bytes", v.Size())
	}
	if _, err := v.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	return &statedSize{t, unlocked(t, s), s.Bytes(), headerOf(t, s).PayloadOffset, data}
}

// sizeOf returns the size of the volume in a disk of that content, which has to be
// whole.
func (c *statedSize) sizeOf(when string, content []byte) int64 {
	c.t.Helper()
	at := Attached(faultstore.New(content))
	v, err := Open(at, c.key, Options{ReadOnly: true})
	if err != nil {
		c.t.Fatalf("%s: %v", when, err)
	}
	defer v.Close()
	kept := min(v.Size(), int64(len(c.data)))
	if !bytes.Equal(readAll(c.t, v, kept), c.data[:kept]) {
		c.t.Fatalf("%s: the data have changed", when)
	}
	if h, err := ReadHeader(at); err != nil || h.PayloadSize != v.Size() {
		c.t.Fatalf("%s: the header states %d bytes (%v), the volume has %d", when, h.PayloadSize, err, v.Size())
	}
	return v.Size()
}

const mostElastic = 4 << 20 // bytes that a store can take

// resizings are to which payload, from how many bytes behind the old one.
var resizings = []struct {
	name    string
	behind  int64
	payload int64
	sparse  bool
}{
	{"larger", 0, statedPayload + 1536<<10, false},
	{"larger, sparse", 0, statedPayload + 1536<<10, true},
	{"smaller", 0, statedPayload - 32<<10, false},
	{"larger into what is there", 1 << 20, statedPayload + 1<<20, false},
	{"larger, the store smaller", 1 << 20, statedPayload + 512<<10, false},
	{"larger, the store too", 1 << 20, statedPayload + 1536<<10, false},
	{"smaller, the store by more", 1 << 20, statedPayload - 32<<10, false},
}

func TestResizeWithStatedSize(t *testing.T) {
	for _, r := range resizings {
		t.Run(r.name, func(t *testing.T) {
			c := newStatedSize(t, r.behind)
			s := newElasticStore(c.content, mostElastic)
			if err := Resize(background, s, s, c.offset+r.payload, r.sparse, nil); err != nil {
				t.Fatal(err)
			}
			if len(s.lengths) != 1 || s.size != c.offset+r.payload {
				t.Errorf("the length is %d, want %d, synced", s.size, c.offset+r.payload)
			}
			if got := c.sizeOf("resized", s.Bytes()[:s.size]); got != r.payload {
				t.Errorf("the volume has %d bytes, want %d", got, r.payload)
			}
			unlocked(t, s)
		})
	}
	c := newStatedSize(t, 0)
	for _, size := range []int64{0, 1 << 20, c.offset + 511} {
		s := newElasticStore(c.content, mostElastic)
		if err := Resize(background, s, s, size, false, nil); !errors.As(err, new(*SizeError)) {
			t.Errorf("to %d bytes: %v, want a *SizeError", size, err)
		}
		if s.size != int64(len(c.content)) || !bytes.Equal(s.Bytes()[:s.size], c.content) {
			t.Errorf("to %d bytes: something was written", size)
		}
	}
}

// TestResizeLeavesOtherHeaders: a header that states no size is not written.
func TestResizeLeavesOtherHeaders(t *testing.T) {
	for _, p := range []Params{quick, quick2} {
		content := format(t, p, statedPayload).Bytes()
		for _, size := range []int64{int64(len(content)) + 4096, int64(len(content)) - 4096} {
			s := newElasticStore(content, mostElastic)
			if err := Resize(background, s, s, size, false, nil); err != nil || s.size != size {
				t.Errorf("%s: the length is %d, want %d (%v)", p.Type, s.size, size, err)
			}
			if kept := min(size, int64(len(content))); !bytes.Equal(s.Bytes()[:kept], content[:kept]) {
				t.Errorf("%s: something was written", p.Type)
			}
		}
	}
}

// TestPowerFailsWhileResizing: at each operation, with any of the sectors and
// lengths that the store may have then, the volume has its old size or the new one.
// Resizing again ends with the new one.
func TestPowerFailsWhileResizing(t *testing.T) {
	forEachResizing(t, faultstore.ErrPower, func(c *statedSize, s *elasticStore, check func(content []byte)) {
		random := newRandom(c.t)
		for disk := range s.AfterPowerCuts(mostDisks, random) {
			for _, length := range slices.Compact(slices.Sorted(slices.Values(s.lengths))) {
				check(disk.Bytes()[:length])
			}
		}
	})
}

// TestFaultsInResizing: the same where an operation fails and the power stays.
func TestFaultsInResizing(t *testing.T) {
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		forEachResizing(t, fault, func(c *statedSize, s *elasticStore, check func(content []byte)) {
			check(s.Bytes()[:s.size])
		})
	}
}

// forEachResizing fails in each operation of each resizing, and has after check the
// contents that are found then.
func forEachResizing(t *testing.T, fault error, after func(c *statedSize, s *elasticStore, check func(content []byte))) {
	for _, r := range resizings {
		t.Run(fault.Error()+", "+r.name, func(t *testing.T) {
			c := newStatedSize(t, r.behind)
			seen := map[int64]int{}
			for failing := 1; ; failing++ {
				s := newElasticStore(c.content, mostElastic)
				what := s.failIn(failing, fault)
				err := Resize(background, s, s, c.offset+r.payload, r.sparse, nil)
				s.fault, s.Fault = func(string) error { return nil }, nil
				if *what == "" {
					if err != nil || failing < 5 {
						t.Errorf("%v after %d operations", err, failing-1)
					}
					break
				}
				if err == nil {
					t.Errorf("%s failed (operation %d), and it says nothing", *what, failing)
				}
				after(c, s, func(content []byte) {
					when := *what + " failed"
					got := c.sizeOf(when, bytes.Clone(content))
					seen[got]++
					if got != r.payload && got != statedPayload {
						t.Errorf("%s (operation %d): the volume has %d bytes", when, failing, got)
					}
					again := newElasticStore(content, mostElastic)
					if err := Resize(background, again, again, c.offset+r.payload, r.sparse, nil); err != nil {
						t.Fatalf("%s (operation %d), again: %v", when, failing, err)
					}
					if got := c.sizeOf("again", again.Bytes()[:again.size]); got != r.payload || again.size != c.offset+r.payload {
						t.Errorf("%s (operation %d), again: the volume has %d bytes, want %d", when, failing, got, r.payload)
					}
				})
			}
			if len(seen) != 2 {
				t.Errorf("the volume had, by size: %v; want the old size and the new one", seen)
			}
		})
	}
}

// failIn has the nth operation fail, and all after it if the power is gone. It
// returns where that operation's name will be.
func (s *elasticStore) failIn(nth int, fault error) (what *string) {
	what = new(string)
	count := 0
	s.fault = func(op string) error {
		count++
		if count < nth || count > nth && fault != faultstore.ErrPower {
			return nil
		}
		if count == nth {
			*what = op
		}
		if op == "write" && fault == faultstore.ErrPower {
			s.Fault = func(faultstore.Op) error { return fault } // some of its sectors may be written
			return nil
		}
		return fault
	}
	return what
}
