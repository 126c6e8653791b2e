package volume

import (
	"fmt"

	"serpcrypt/internal/secret"
)

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
