package serpent

// series walks over the blocks of sectors and tells what each is combined
// with: its tweak in XTS, its counter block in CTR.
type series struct {
	firsts     []byte // of the sectors to come, 16 bytes each
	sectorSize int    // bytes
	count      bool   // counter blocks, not tweaks

	next block // if some of a sector is left
	left int   // bytes
}

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

// after returns what comes after x inside of a sector.
func (s *series) after(x block) block {
	if s.count {
		return x.counter().next().block()
	}
	return x.double()
}

// predecessors walks over the blocks of sectors in CBC and tells what is XORed
// with each decrypted one: the ciphertext before it, or the IV.
type predecessors struct {
	ivs        []byte // of the sectors to come, 16 bytes each
	sectorSize int    // bytes
	done       int    // bytes
	last       block  // the ciphertext before what is left of a sector
}

// sector moves on to the end of a sector. It returns the predecessor of its
// first block, or of the first that is left of it, and the number of bytes.
func (p *predecessors) sector() (first block, n int) {
	first, n = p.last, p.sectorSize-p.done%p.sectorSize
	if n == p.sectorSize {
		first = loadBlock(p.ivs)
		p.ivs = p.ivs[BlockSize:]
	}
	p.done += n
	return first, n
}
