package serpent

// series walks over the blocks of sectors and tells what each is combined with.
type series struct {
	kind       seriesKind
	firsts     []byte // of the sectors to come, 16 bytes each
	sectorSize int    // bytes

	next block // if some of a sector is left
	left int   // bytes
}

type seriesKind uint8

const (
	tweaks      seriesKind = iota // of XTS
	counters                      // of CTR
	ciphertexts                   // in CBC decryption: the IV, and then the block before
)

// sector moves on to the end of a sector. It returns what its first block, or
// the first that is left of it, is combined with, and the number of bytes.
func (s *series) sector() (first block, n int) {
	s.begin()
	first, n = s.next, s.left
	s.left = 0
	return first, n
}

// begin moves on to the next sector if nothing is left of the last.
func (s *series) begin() {
	if s.left == 0 {
		s.next, s.left = loadBlock(s.firsts), s.sectorSize
		s.firsts = s.firsts[BlockSize:]
	}
}

// after returns the tweak or counter block after x.
func (s *series) after(x block) block {
	if s.kind == counters {
		return x.counter().next().block()
	}
	return x.double()
}
