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
	"serpcrypt/internal/secret"
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

// transfer reads or writes all of p, one piece after the other.
func (v *Volume) transfer(p []byte, off int64, writes bool) (int, error) {
	for done := 0; done < len(p); {
		var n int
		var err error
		if writes {
			n, err = v.writePiece(p[done:], off+int64(done))
		} else {
			n, err = v.readPiece(p[done:], off+int64(done))
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// A piece is what is read or written at once: whole sectors up to maxPiece, or
// a part of one sector. It lies in one segment and under one stripe lock, so
// that no operation ever waits for a lock while it holds another.

// maxPiece is as much as stays in a core's cache on its way through the cipher.
const maxPiece = 256 << 10

// pieceAt returns the length of the piece at pos, of n bytes that there are,
// and whether it is whole sectors.
func (s *segment) pieceAt(pos int64, n int) (length int, whole bool) {
	sectorSize := int64(s.sectorSize)
	inSector := (pos - s.start) % sectorSize
	if inSector != 0 || int64(n) < sectorSize {
		return int(min(int64(n), sectorSize-inSector)), false
	}
	most := min(int64(n), maxPiece, s.end()-pos, stripeSize-(pos-s.start)%stripeSize)
	return int(most / sectorSize * sectorSize), true
}

func (v *Volume) readPiece(p []byte, pos int64) (int, error) {
	s := segmentAt(v.segments, pos)
	n, whole := s.pieceAt(pos, len(p))
	lock := v.stripes.at(pos - s.start)
	if whole {
		lock.RLock()
		defer lock.RUnlock()
		if err := s.read(v.store, p[:n], pos); err != nil {
			return 0, readError(pos, err)
		}
		return n, nil
	}
	scratch := v.scratch.get()
	defer v.scratch.put(scratch)
	sector, first, inSector := s.sectorAround(pos, scratch)
	lock.RLock()
	defer lock.RUnlock()
	if err := s.read(v.store, sector, first); err != nil {
		return 0, readError(pos, err)
	}
	copy(p[:n], sector[inSector:])
	secret.Wipe(sector)
	return n, nil
}

func (v *Volume) writePiece(p []byte, pos int64) (int, error) {
	s := segmentAt(v.segments, pos)
	n, whole := s.pieceAt(pos, len(p))
	scratch := v.scratch.get()
	defer v.scratch.put(scratch)
	lock := v.stripes.at(pos - s.start)
	if whole {
		lock.RLock()
		defer lock.RUnlock()
		if err := s.write(v.store, p[:n], scratch[:n], pos); err != nil {
			return 0, writeError(pos, err)
		}
		return n, nil
	}
	sector, first, inSector := s.sectorAround(pos, scratch)
	lock.Lock()
	defer lock.Unlock()
	if err := s.read(v.store, sector, first); err != nil {
		return 0, readError(pos, err)
	}
	copy(sector[inSector:], p[:n])
	if err := s.write(v.store, sector, sector, first); err != nil {
		return 0, writeError(pos, err)
	}
	return n, nil
}

// sectorAround returns room for the sector that holds pos, where that begins,
// and how far into it pos is.
func (s *segment) sectorAround(pos int64, scratch []byte) (sector []byte, first int64, inSector int) {
	inSector = int((pos - s.start) % int64(s.sectorSize))
	return scratch[:s.sectorSize], pos - int64(inSector), inSector
}

func readError(pos int64, err error) error {
	return fmt.Errorf("volume: read at byte %d of the volume: %w", pos, err)
}

func writeError(pos int64, err error) error {
	return fmt.Errorf("volume: write at byte %d of the volume: %w", pos, err)
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
