package volume

import (
	"bytes"
	"fmt"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/fsprobe"
)

// ext is enough of a superblock to be taken for a file system.
func ext(of []byte) []byte {
	copy(of[1024+0x38:], "\x53\xEF")
	return of
}

// TestCopyInPowerCuts cuts the power at every operation of an import. At any time
// there is the old volume, the new one, or a mark that it is neither, which others
// find no file system behind as long as any part of it is missing.
func TestCopyInPowerCuts(t *testing.T) {
	random := newRandom(t)
	for _, sectorSize := range []int{512, 4096} { // the disk's have 512 in any case
		l := layout{extents: []extent{{size: chunkSize + 64<<10, offset: 4096, spec: "serpent-xts-plain64", sectorSize: sectorSize}}}
		for _, n := range []int64{512, 513, 100_001, l.size()} {
			t.Run(fmt.Sprintf("sectors of %d,len=%d", sectorSize, n), func(t *testing.T) {
				before := newStore(4096 + l.size())
				v := l.open(t, before, Options{})
				old := ext(randomBytes(random, int(l.size())))
				if err := v.CopyIn(background, bytes.NewReader(old), v.Size(), nil); err != nil {
					t.Fatal(err)
				}
				source := randomBytes(random, int(n))
				if n >= 2048 {
					ext(source)
				}
				c := cutImport{layout: l, before: before.Bytes(), old: old, source: source}
				for c.cutAt(t, func(s *faultstore.Store) {
					for after := range s.AfterPowerCuts(4, random) {
						c.check(t, after)
					}
				}) {
				}
				if c.seen["old"] == 0 || c.seen["new"] == 0 || n > 4096 && c.seen["mark"] == 0 {
					t.Errorf("found in %d cuts: %v", c.cuts, c.seen)
				}
			})
		}
	}
}

// cutImport is an import that the power is cut in.
type cutImport struct {
	layout
	before      []byte // the store
	old, source []byte // what the volume holds, and what is imported
	cuts        int
	seen        map[string]int // what was found how often
}

// cutAt cuts the power one operation later than the time before, and reports
// whether the import had one more.
func (c *cutImport) cutAt(t *testing.T, found func(s *faultstore.Store)) bool {
	s := faultstore.New(bytes.Clone(c.before))
	v := c.open(t, s, Options{})
	ops, last := 0, c.cuts+1
	s.Fault = func(op faultstore.Op) error {
		if op.Kind == faultstore.Read {
			return nil
		}
		if ops++; ops == last {
			return faultstore.ErrPower
		}
		return nil
	}
	err := v.CopyIn(background, bytes.NewReader(c.source), int64(len(c.source)), nil)
	if isCut := ops >= last; isCut != (err != nil) {
		t.Fatalf("cut: %v, error: %v", isCut, err)
	}
	found(s)
	c.cuts++
	return err != nil
}

func (c *cutImport) check(t *testing.T, s *faultstore.Store) {
	t.Helper()
	v := c.open(t, s, Options{ReadOnly: true})
	got := readAll(t, v, v.Size())
	if behind := len(c.source); !bytes.Equal(got[behind:], c.old[behind:]) {
		t.Errorf("cut %d: what lies behind has changed", c.cuts)
	}
	got = got[:len(c.source)]
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	mark := fsprobe.UnfinishedMark()
	switch {
	case bytes.Equal(got, c.old[:len(got)]):
		c.seen["old"]++
	case bytes.Equal(got, c.source):
		c.seen["new"]++
	case bytes.HasPrefix(got, mark):
		c.seen["mark"]++
		// All but the first sector is whole where others see a file system, or the
		// old one was there in part at most while it was whole behind.
		isExt := len(got) > 2048 && bytes.Equal(got[1024+0x38:1024+0x3A], []byte("\x53\xEF"))
		rest := got[min(len(got), chunkSize):]
		if isExt && !bytes.Equal(rest, c.source[len(got)-len(rest):]) && !bytes.Equal(rest, c.old[len(got)-len(rest):len(got)]) {
			t.Errorf("cut %d: a file system in parts can be seen", c.cuts)
		}
	default:
		t.Errorf("cut %d: neither the old volume nor the new one, and no mark", c.cuts)
	}
}
