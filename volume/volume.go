// Package volume makes and opens encrypted containers, and reads and writes
// the volume inside of one: plaintext bytes at any place, from any number of
// goroutines.
//
// A format (LUKS1 or LUKS2) turns header and key into segments: which sectors of
// the volume lie where in the store, under which cipher. All else is the same for
// every format.
package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"serpcrypt/cipher/serpent"
)

// Options are how a volume is opened.
type Options struct {
	Kernel   serpent.Kernel // the Serpent code to use
	ReadOnly bool
}

// Volume is an open container. Its methods may be called concurrently, and
// ReadAt and WriteAt allocate nothing.
//
// What overlapping calls do to the same bytes is as undefined as on a disk;
// calls that share no byte never disturb each other, also inside one sector.
type Volume struct {
	store    Store
	segments []segment
	size     int64
	readOnly bool
	scratch  scratchPool
	stripes  stripeLocks
	team     *team

	life   sync.RWMutex // read-locked by each running operation
	closed bool

	syncing  sync.Mutex
	syncErr  error // of the first sync that failed
	closeErr error
}

// Open opens a container with its volume key, of which it keeps no copy but
// inside the ciphers. The volume ends with the last whole sector. It uses the
// store of the data until Close, but does not close it.
//
// It trusts the key to be this container's. To derive the digest once more
// would leave a copy of the key in memory that is neither locked nor wiped,
// which a process that lives long shall not have.
//
// Errors: a *FormatError, or those of the store.
func Open(at Stores, key *Key, o Options) (*Volume, error) {
	c, err := openContainer(context.Background(), at)
	if err != nil {
		return nil, err
	}
	extents, err := c.extents()
	if err != nil {
		return nil, err
	}
	return newVolume(at.Data, extents, key.Bytes.Bytes(), o)
}

func newVolume(s Store, extents []extent, key []byte, o Options) (*Volume, error) {
	segments, err := newSegments(extents, key, o.Kernel, newCipher)
	if err != nil {
		return nil, fmt.Errorf("volume: %w", err)
	}
	return overSegments(s, segments, o), nil
}

func overSegments(s Store, segments []segment, o Options) *Volume {
	return &Volume{
		store:    s,
		segments: segments,
		size:     segments[len(segments)-1].end(),
		readOnly: o.ReadOnly,
		scratch:  newScratchPool(),
		team:     newTeam(),
	}
}

// Size returns the length of the volume in bytes.
func (v *Volume) Size() int64 { return v.size }

// SectorSize returns the size of the largest sectors, in bytes. Whoever writes
// whole ones, aligned, spares us to read what is around.
func (v *Volume) SectorSize() int {
	largest := 0
	for i := range v.segments {
		largest = max(largest, v.segments[i].sectorSize)
	}
	return largest
}

// begin lets an operation in, unless the volume is closed. end is to be called
// when it is over.
func (v *Volume) begin() error {
	v.life.RLock()
	if v.closed {
		v.life.RUnlock()
		return ErrClosed
	}
	return nil
}

func (v *Volume) end() { v.life.RUnlock() }

// ReadAt implements io.ReaderAt.
func (v *Volume) ReadAt(p []byte, off int64) (int, error) {
	if err := v.begin(); err != nil {
		return 0, err
	}
	defer v.end()
	if off < 0 {
		return 0, fmt.Errorf("%w: read at %d", ErrOutside, off)
	}
	if off >= v.size {
		return 0, io.EOF
	}
	var atEnd error
	if int64(len(p)) > v.size-off {
		p, atEnd = p[:v.size-off], io.EOF
	}
	if n, err := v.team.do(v, p, off, false); err != nil {
		return n, err
	}
	return len(p), atEnd
}

// WriteAt implements io.WriterAt. If p reaches past the end, nothing is written
// and the error is ErrOutside.
func (v *Volume) WriteAt(p []byte, off int64) (int, error) {
	if err := v.begin(); err != nil {
		return 0, err
	}
	defer v.end()
	if v.readOnly {
		return 0, ErrReadOnly
	}
	if off < 0 || int64(len(p)) > v.size-off {
		return 0, fmt.Errorf("%w: %d bytes at %d, the volume has %d", ErrOutside, len(p), off, v.size)
	}
	return v.team.do(v, p, off, true)
}

// Discard gives the space of the whole sectors among the n bytes at off back
// to the store. What is read there afterwards is undefined. It is
// errors.ErrUnsupported if the store has no way to do so.
func (v *Volume) Discard(off, n int64) error {
	if err := v.begin(); err != nil {
		return err
	}
	defer v.end()
	puncher, can := v.store.(HolePuncher)
	switch {
	case v.readOnly:
		return ErrReadOnly
	case off < 0 || n < 0 || n > v.size-off:
		return fmt.Errorf("%w: discard of %d bytes at %d, the volume has %d", ErrOutside, n, off, v.size)
	case !can:
		return fmt.Errorf("volume: discard: %w", errors.ErrUnsupported)
	}
	for i := range v.segments {
		s := &v.segments[i]
		sectorSize := int64(s.sectorSize)
		from := max(0, off-s.start+sectorSize-1) / sectorSize * sectorSize
		to := min(off+n-s.start, s.size) / sectorSize * sectorSize
		if from < to {
			if err := puncher.PunchHole(s.offset+from, to-from); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sync returns when everything written before is on the disk. Once it has
// failed, what was written may be lost, and it fails forever.
func (v *Volume) Sync() error {
	if err := v.begin(); err != nil {
		return err
	}
	defer v.end()
	return v.sync()
}

func (v *Volume) sync() error {
	if v.readOnly {
		return nil
	}
	// One at a time: a failure is told to one caller only, and the others must
	// not return before they know of it.
	v.syncing.Lock()
	defer v.syncing.Unlock()
	if v.syncErr == nil {
		if err := v.store.Sync(); err != nil {
			v.syncErr = fmt.Errorf("volume: sync: %w", err)
		}
	}
	return v.syncErr
}

// Close waits for running operations, syncs, and wipes the keys in any case.
// Its error is that of the sync. Closing again does nothing, with the same
// result.
func (v *Volume) Close() error {
	v.life.Lock()
	defer v.life.Unlock()
	if v.closed {
		return v.closeErr
	}
	v.closed = true
	v.team.end()
	v.closeErr = v.sync()
	wipeSegments(v.segments)
	return v.closeErr
}
