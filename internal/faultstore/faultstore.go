// Package faultstore is a disk in memory for tests. It fails on request, and
// when its power is cut it forgets what was not synced as badly as a real one:
// sector by sector, in any order.
package faultstore

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
)

// SectorSize is the size of the pieces that are written whole or not at all.
const SectorSize = 512

// ErrPower is what every operation returns from the power cut on.
var ErrPower = errors.New("faultstore: no power")

// Kind tells the operations apart.
type Kind int

const (
	Read Kind = iota
	Write
	Sync
)

// Op is an operation that is about to happen. Off and Len are 0 for Sync.
type Op struct {
	Kind Kind
	Off  int64
	Len  int
}

// Short is an error for Fault to return: the operation transfers that many
// bytes before it fails, if it has more.
type Short int

func (Short) Error() string { return "faultstore: short transfer" }

// Store is the disk. It is safe for concurrent use.
type Store struct {
	// Fault, if not nil, is asked before each operation, one at a time. An
	// error is returned in place of doing it. ErrPower cuts the power: the
	// operation's sectors, and all not synced before, may or may not last.
	Fault func(Op) error

	mu      sync.Mutex
	off     bool
	content []byte
	// unsynced has, for each sector written since the last sync, its contents
	// from the synced one to the present one.
	unsynced map[int][][]byte
}

// New returns a disk with that content, which it takes over. The length is
// that of the disk, forever.
func New(content []byte) *Store {
	return &Store{content: content, unsynced: map[int][][]byte{}}
}

// begin returns how many bytes op transfers and its error, with mu held.
func (s *Store) begin(op Op) (int, error) {
	if s.off {
		return 0, ErrPower
	}
	if s.Fault == nil {
		return op.Len, nil
	}
	err := s.Fault(op)
	var short Short
	switch {
	case err == nil:
		return op.Len, nil
	case errors.As(err, &short):
		if int(short) >= op.Len && op.Kind != Sync {
			return op.Len, nil
		}
		return int(short), err
	case errors.Is(err, ErrPower):
		s.off = true
		return op.Len, err
	}
	return 0, err
}

// ReadAt implements io.ReaderAt.
func (s *Store) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.begin(Op{Read, off, len(p)})
	n = copy(p[:n], s.content[min(off, int64(len(s.content))):])
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// WriteAt implements io.WriterAt. Past the end there is no space.
func (s *Store) WriteAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.begin(Op{Write, off, len(p)})
	if space := max(0, int64(len(s.content))-off); int64(n) > space {
		n, err = int(space), errors.Join(err, syscall.ENOSPC)
	}
	if n == 0 {
		return 0, err
	}
	first, last := int(off)/SectorSize, (int(off)+n-1)/SectorSize
	for i := first; i <= last; i++ {
		if s.unsynced[i] == nil {
			s.unsynced[i] = [][]byte{slices.Clone(s.sector(i))}
		}
	}
	copy(s.content[off:], p[:n])
	for i := first; i <= last; i++ {
		s.remember(i)
	}
	if errors.Is(err, ErrPower) {
		n = 0
	}
	return n, err
}

// remember adds the present content of a sector, unless it is the last one.
func (s *Store) remember(i int) {
	contents := s.unsynced[i]
	if present := s.sector(i); !bytes.Equal(present, contents[len(contents)-1]) {
		s.unsynced[i] = append(contents, slices.Clone(present))
	}
}

func (s *Store) sector(i int) []byte {
	return s.content[i*SectorSize : min((i+1)*SectorSize, len(s.content))]
}

// Sync makes what was written last.
func (s *Store) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.begin(Op{Kind: Sync})
	if err == nil {
		clear(s.unsynced)
	}
	return err
}

// Size returns the length of the disk. It never fails.
func (s *Store) Size() (int64, error) { return int64(len(s.content)), nil }

// Bytes returns a copy of the present content.
func (s *Store) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.content)
}

// AfterPowerCut returns the disk as it may be found afterwards. For each
// sector that was written and not synced, choose(n) picks one of its n
// contents, 0 being the synced one and n-1 the last.
func (s *Store) AfterPowerCut(choose func(n int) int) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	after := New(slices.Clone(s.content))
	for _, i := range slices.Sorted(maps.Keys(s.unsynced)) {
		contents := s.unsynced[i]
		copy(after.sector(i), contents[choose(len(contents))])
	}
	return after
}

// AfterPowerCuts yields the disks that may be found afterwards: all of them if
// they are not more than most, or else the two extremes and others that random
// picks, most in all.
func (s *Store) AfterPowerCuts(most int, random *rand.Rand) iter.Seq[*Store] {
	return func(yield func(*Store) bool) {
		sizes := s.choices()
		if product(sizes, most) > most {
			for i := range most {
				choose := random.IntN
				switch i {
				case 0:
					choose = Oldest
				case 1:
					choose = Newest
				}
				if !yield(s.AfterPowerCut(choose)) {
					return
				}
			}
			return
		}
		for number := range product(sizes, most) {
			rest := number
			choose := func(n int) int {
				choice := rest % n
				rest /= n
				return choice
			}
			if !yield(s.AfterPowerCut(choose)) {
				return
			}
		}
	}
}

// choices returns how many contents there are of each sector that was not synced.
func (s *Store) choices() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sizes := []int{}
	for _, contents := range s.unsynced {
		sizes = append(sizes, len(contents))
	}
	return sizes
}

// product returns that of the sizes, or any number above most if it is more.
func product(sizes []int, most int) int {
	n := 1
	for _, size := range sizes {
		if n *= size; n > most {
			break
		}
	}
	return n
}

// Oldest and Newest are the extremes for AfterPowerCut: nothing that was not
// synced lasts, or all of it.
func Oldest(int) int   { return 0 }
func Newest(n int) int { return n - 1 }
