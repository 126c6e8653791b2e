package volume

import (
	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
)

// extent is a run of sectors of the volume that lie together in the store,
// under one cipher. Places and sizes are in bytes.
type extent struct {
	start       int64  // place in the volume
	size        int64  // whole sectors
	offset      int64  // place in the store
	spec        string // of the cipher
	sectorSize  int
	firstSector uint64 // number of the first sector, in units of 512 bytes
}

// SectorCipher is *modes.Sectors, or what stands in for it. Sectors are whole,
// and first is the number of the first one, in units of 512 bytes. dst and src
// overlap exactly or not at all. Both are called concurrently; Wipe is the end.
type SectorCipher interface {
	Encrypt(dst, src []byte, first uint64)
	Decrypt(dst, src []byte, first uint64)
	Wipe()
}

// makeCipher makes the cipher of an extent.
type makeCipher func(e extent, key []byte, k serpent.Kernel) (SectorCipher, error)

func newCipher(e extent, key []byte, k serpent.Kernel) (SectorCipher, error) {
	return modes.New(e.spec, key, e.sectorSize, k)
}

// segment is an extent whose cipher has its key.
type segment struct {
	extent
	cipher SectorCipher
}

// newSegments gives each extent its cipher. On an error none is left.
func newSegments(extents []extent, key []byte, k serpent.Kernel, newCipher makeCipher) ([]segment, error) {
	var segments []segment
	for _, e := range extents {
		cipher, err := newCipher(e, key, k)
		if err != nil {
			wipeSegments(segments)
			return nil, err
		}
		segments = append(segments, segment{e, cipher})
	}
	return segments, nil
}

func wipeSegments(segments []segment) {
	for _, s := range segments {
		s.cipher.Wipe()
	}
}

// segmentAt returns the segment that holds the volume's byte pos. There are
// few, and no gaps between them.
func segmentAt(segments []segment, pos int64) *segment {
	i := 0
	for i+1 < len(segments) && segments[i+1].start <= pos {
		i++
	}
	return &segments[i]
}

func (s *segment) end() int64                { return s.start + s.size }
func (s *segment) inStore(pos int64) int64   { return s.offset + (pos - s.start) }
func (s *segment) sectorAt(pos int64) uint64 { return s.firstSector + uint64(pos-s.start)/512 }

// The volume's byte pos, below, begins a sector, and p is whole sectors.

// read decrypts p in place.
func (s *segment) read(store Store, p []byte, pos int64) error {
	if err := readFull(store, p, s.inStore(pos)); err != nil {
		return err
	}
	s.cipher.Decrypt(p, p, s.sectorAt(pos))
	return nil
}

// write encrypts p into scratch, which is as long and may be p itself.
func (s *segment) write(store Store, p, scratch []byte, pos int64) error {
	s.cipher.Encrypt(scratch, p, s.sectorAt(pos))
	return writeFull(store, scratch, s.inStore(pos))
}
