//go:build !purego

package serpent

import (
	"math"

	"github.com/klauspost/cpuid/v2"
)

// requirements are the CPU features that each vector kernel needs, the slowest
// kernel first. The package cpuid reports those of AVX only if the system saves
// the registers.
var requirements = []struct {
	kernel   Kernel
	features []cpuid.FeatureID
}{
	{SSE2, []cpuid.FeatureID{cpuid.SSE2}},
	{AVX2, []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX2}},
	{AVX512, []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL}},
}

func vectorKernels() []Kernel { return usable(&cpuid.CPU) }

func usable(cpu *cpuid.CPUInfo) (kernels []Kernel) {
	for _, r := range requirements {
		if cpu.Supports(r.features...) {
			kernels = append(kernels, r.kernel)
		}
	}
	return kernels
}

// vectorKeys are the round keys of the vector kernels: of each its own, so that
// a test can tell which code has worked. All but those of the cipher's kernel
// are zero.
type vectorKeys struct {
	sse2   struct{ encrypt, decrypt [33][4][4]uint32 }
	avx2   struct{ encrypt, decrypt [33][4][8]uint32 }
	avx512 struct{ encrypt, decrypt [33][4][1]uint32 }
}

// set fills in the keys of kernel k: plain for S-boxes without complemented
// words, the others for those with them.
func (v *vectorKeys) set(k Kernel, plain, encrypt, decrypt *roundKeys) {
	for r := range plain {
		for i := range plain[r] {
			switch k {
			case SSE2:
				fill(v.sse2.encrypt[r][i][:], encrypt[r][i])
				fill(v.sse2.decrypt[r][i][:], decrypt[r][i])
			case AVX2:
				fill(v.avx2.encrypt[r][i][:], encrypt[r][i])
				fill(v.avx2.decrypt[r][i][:], decrypt[r][i])
			case AVX512:
				fill(v.avx512.encrypt[r][i][:], plain[r][i])
				fill(v.avx512.decrypt[r][i][:], plain[r][i])
			}
		}
	}
}

func fill(lanes []uint32, word uint32) {
	for i := range lanes {
		lanes[i] = word
	}
}

// maxPass is the most that a kernel takes in one pass.
const maxPass = 6 * 16 * BlockSize

// pass says how a vector kernel divides its work. It takes whole groups of
// blocks.
type pass struct {
	group  int   // bytes in a group
	least  int   // bytes that are worth the time of a group
	groups []int // the next pass by how many groups there are, the last for more
}

// Passes are as even as they can be: one of few groups takes nearly as long as
// one of twice as many.
var passes = [...]pass{
	Generic: {least: math.MaxInt},
	SSE2:    {group: 4 * BlockSize, least: 3 * BlockSize, groups: []int{0, 1, 2, 3, 2, 3}},
	AVX2:    {group: 8 * BlockSize, least: 3 * BlockSize, groups: []int{0, 1, 2, 3, 2, 3}},
	AVX512:  {group: 16 * BlockSize, least: BlockSize, groups: []int{0, 1, 2, 3, 4, 3, 6, 4, 4, 6, 6, 3, 6}},
}

// next returns how many groups the next pass takes if there are n.
func (p *pass) next(n int) int { return p.groups[min(n, len(p.groups)-1)] }

// size returns how many of n bytes the next pass takes: whole groups, or what
// is left if that is less than a group, or none.
func (p *pass) size(n int) int {
	switch {
	case n < p.least:
		return 0
	case n < p.group:
		return n
	}
	return p.next(n/p.group) * p.group
}

// pass returns how the kernel of c divides its work. The portable code takes
// nothing here.
func (c *Cipher) pass() *pass { return &passes[c.kernel] }

var zeros [maxPass]byte

// crypt encrypts or decrypts src, of the size of a pass, XORed with before, and
// XORs the outcome with after. dst may be any of the others.
func (c *Cipher) crypt(dst, src, before, after []byte, d direction) {
	group := c.pass().group
	if len(src) < group {
		c.cryptPart(dst, src, before, after, d)
		return
	}
	c.cryptGroups(len(src)/group, dst, src, before, after, d)
}

// cryptPart is crypt for less than a group.
func (c *Cipher) cryptPart(dst, src, before, after []byte, d direction) {
	const maxGroup = 16 * BlockSize
	var text, first, last [maxGroup]byte
	n := copy(text[:], src)
	copy(first[:n], before)
	copy(last[:n], after)
	c.cryptGroups(1, text[:], text[:], first[:], last[:], d)
	copy(dst[:n], text[:])
	wipe(&text)
	wipe(&first)
	wipe(&last)
}

func (c *Cipher) cryptGroups(groups int, dst, src, before, after []byte, d direction) {
	last := groups*c.pass().group - 1
	_, _, _, _ = dst[last], src[last], before[last], after[last]
	v := &c.vector
	switch {
	case c.kernel == SSE2 && d == encrypting:
		encryptSSE2(&dst[0], &src[0], &before[0], &after[0], groups, &v.sse2.encrypt)
	case c.kernel == SSE2:
		decryptSSE2(&dst[0], &src[0], &before[0], &after[0], groups, &v.sse2.decrypt)
	case c.kernel == AVX2 && d == encrypting:
		encryptAVX2(&dst[0], &src[0], &before[0], &after[0], groups, &v.avx2.encrypt)
	case c.kernel == AVX2:
		decryptAVX2(&dst[0], &src[0], &before[0], &after[0], groups, &v.avx2.decrypt)
	case c.kernel == AVX512 && d == encrypting:
		encryptAVX512(&dst[0], &src[0], &before[0], &after[0], groups, &v.avx512.encrypt)
	case c.kernel == AVX512:
		decryptAVX512(&dst[0], &src[0], &before[0], &after[0], groups, &v.avx512.decrypt)
	}
}

// Each of the following does what its portable twin does with as much as the
// kernel's passes take, and returns how many bytes that is.

func (c *Cipher) blocksVector(dst, src []byte, d direction) (done int) {
	p := c.pass()
	for n := p.size(len(src)); n > 0; n = p.size(len(src) - done) {
		c.crypt(dst[done:], src[done:done+n], zeros[:], zeros[:], d)
		done += n
	}
	return done
}

func (c *Cipher) xexVector(dst, src, tweaks []byte, d direction) (done int) {
	p := c.pass()
	for n := p.size(len(src)); n > 0; n = p.size(len(src) - done) {
		c.crypt(dst[done:], src[done:done+n], tweaks[done:], tweaks[done:], d)
		done += n
	}
	return done
}

func (c *Cipher) xtsVector(dst, src []byte, tweaks *series, d direction) (done int) {
	var scratch seriesScratch
	p := c.pass()
	for n := p.size(len(src)); n > 0; n = p.size(len(src) - done) {
		c.fillSeries(&scratch, n, tweaks)
		c.crypt(dst[done:], src[done:done+n], scratch[:], scratch[:], d)
		done += n
	}
	wipe(&scratch)
	return done
}

func (c *Cipher) ctrVector(dst, src []byte, counters *series) (done int) {
	var scratch seriesScratch
	p := c.pass()
	for n := p.size(len(src)); n > 0; n = p.size(len(src) - done) {
		c.fillSeries(&scratch, n, counters)
		c.crypt(dst[done:], scratch[:n], zeros[:], src[done:], encrypting)
		done += n
	}
	return done
}

func (c *Cipher) decryptCBCVector(dst, src []byte, previous *predecessors) (done int) {
	var scratch [maxPass]byte
	p := c.pass()
	for n := p.size(len(src)); n > 0; n = p.size(len(src) - done) {
		previous.fill(scratch[:n], src)
		c.crypt(dst[done:], src[done:done+n], zeros[:], scratch[:], decrypting)
		done += n
	}
	return done
}

// fill fills dst with the predecessors of the next blocks of src, and moves on
// to those after them. It keeps what it needs of src, as its place may be that
// of the plaintext.
func (p *predecessors) fill(dst, src []byte) {
	p.last.store(dst)
	p.last = loadBlock(src[p.done+len(dst)-BlockSize:])
	copy(dst[BlockSize:], src[p.done:])
	for at := -p.done % p.sectorSize; at < len(dst); at += p.sectorSize {
		if at >= 0 {
			copy(dst[at:], p.ivs[:BlockSize])
			p.ivs = p.ivs[BlockSize:]
		}
	}
	p.done += len(dst)
}

// maxVector is the size of the largest register.
const maxVector = 64

// seriesScratch has room behind a pass, as series are computed in vectors.
type seriesScratch [maxPass + maxVector]byte

// fillSeries writes to the first n bytes of dst what the next blocks are
// combined with.
func (c *Cipher) fillSeries(dst *seriesScratch, n int, s *series) {
	for at := 0; at < n; {
		s.begin()
		part := min(s.left, n-at)
		c.fillSector(dst[at:], part, s)
		at += part
		if s.left -= part; s.left > 0 {
			s.next = s.after(loadBlock(dst[at-BlockSize:]))
		}
	}
}

// fillSector does the same for n bytes of a sector. It writes up to the end of
// a vector.
func (c *Cipher) fillSector(dst []byte, n int, s *series) {
	switch number := s.next.counter(); {
	case s.count && number.lo > -uint64(n+maxVector)/BlockSize:
		// The low half overflows, which vectors are not made for.
	case c.kernel == AVX2 && s.count:
		countersAVX2(&dst[0], &[2]uint64{number.lo, number.hi}, (n+31)/32)
		return
	case c.kernel == AVX2:
		first := s.next.bytes()
		tweaksAVX2(&dst[0], &first, (n+31)/32)
		return
	case c.kernel == AVX512 && s.count:
		countersAVX512(&dst[0], &[2]uint64{number.lo, number.hi}, (n+63)/64)
		return
	case c.kernel == AVX512:
		first := s.next.bytes()
		tweaksAVX512(&dst[0], &first, (n+63)/64)
		return
	}
	for x, at := s.next, 0; at < n; x, at = s.after(x), at+BlockSize {
		x.store(dst[at:])
	}
}

// encryptCBCVector works on whole sectors, one per lane, and returns how many.
func (c *Cipher) encryptCBCVector(dst, src, ivs []byte, sectorSize int) (sectors int) {
	lanes := c.pass().lanes(len(ivs) / BlockSize)
	if lanes == 0 {
		return 0
	}
	var rows cbcRows
	for ; lanes > 0; lanes = c.pass().lanes(len(ivs)/BlockSize - sectors) {
		at := sectors * sectorSize
		c.encryptCBCLanes(&rows, dst[at:], src[at:], ivs[sectors*BlockSize:], sectorSize, lanes)
		sectors += lanes
	}
	wipe(&rows)
	return sectors
}

// lanes returns how many of n sectors the next pass takes, a lane each. Here
// the last group need not be full.
func (p *pass) lanes(n int) int {
	if n*BlockSize < p.least {
		return 0
	}
	group := p.group / BlockSize
	return min(n, p.next((n+group-1)/group)*group)
}

// cbcRows hold blocks of the sectors that are encrypted side by side: the first
// row the last ciphertext of each, the others its next blocks.
type cbcRows [1 + lineBlocks][maxPass]byte

// lineBlocks is how many blocks of a sector are moved at once: a line of the
// cache, as sectors that are a power of two apart push each other out of it.
const lineBlocks = 4

func (c *Cipher) encryptCBCLanes(rows *cbcRows, dst, src, ivs []byte, sectorSize, lanes int) {
	copy(rows[0][:lanes*BlockSize], ivs)
	group := c.pass().group
	n := (lanes*BlockSize + group - 1) / group * group
	for at := 0; at < sectorSize; at += lineBlocks * BlockSize {
		blocks := min(lineBlocks, (sectorSize-at)/BlockSize)
		rows.gather(src[at:], sectorSize, lanes, blocks)
		for i := 1; i <= blocks; i++ {
			c.crypt(rows[i][:], rows[i][:n], rows[i-1][:], zeros[:], encrypting)
		}
		rows.scatter(dst[at:], sectorSize, lanes, blocks)
		copy(rows[0][:n], rows[blocks][:])
	}
}

// gather fetches the next blocks of each sector.
func (rows *cbcRows) gather(src []byte, sectorSize, lanes, blocks int) {
	_ = src[(lanes-1)*sectorSize+blocks*BlockSize-1]
	if blocks == lineBlocks {
		gather(&rows[1][0], &src[0], len(rows[1]), sectorSize, lanes)
		return
	}
	for lane := range lanes {
		for i := range blocks {
			copy(rows[1+i][lane*BlockSize:], src[lane*sectorSize+i*BlockSize:][:BlockSize])
		}
	}
}

// scatter is the inverse of gather.
func (rows *cbcRows) scatter(dst []byte, sectorSize, lanes, blocks int) {
	_ = dst[(lanes-1)*sectorSize+blocks*BlockSize-1]
	if blocks == lineBlocks {
		scatter(&rows[1][0], &dst[0], len(rows[1]), sectorSize, lanes)
		return
	}
	for lane := range lanes {
		for i := range blocks {
			copy(dst[lane*sectorSize+i*BlockSize:], rows[1+i][lane*BlockSize:][:BlockSize])
		}
	}
}
