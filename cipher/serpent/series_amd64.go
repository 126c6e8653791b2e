//go:build !purego

package serpent

import "unsafe"

// seriesVector does XTS, CTR and CBC decryption. A small sector does not have to
// clear and wipe the scratch memory of a large pass.
func (c *Cipher) seriesVector(dst, src []byte, s *series, d direction) (done int) {
	switch {
	case c.passes().size(len(src)) == 0:
		return 0
	case len(src) <= smallPass:
		return c.seriesSmall(dst, src, s, d)
	}
	return c.seriesLarge(dst, src, s, d)
}

const (
	smallPass = 32 * BlockSize
	maxVector = 64 // as series are computed in vectors, they need room behind a pass
)

//go:noinline
func (c *Cipher) seriesSmall(dst, src []byte, s *series, d direction) int {
	var scratch [smallPass + maxVector]byte
	done := c.seriesPasses(scratch[:], dst, src, s, d)
	wipe(&scratch)
	return done
}

//go:noinline
func (c *Cipher) seriesLarge(dst, src []byte, s *series, d direction) int {
	var scratch [maxPass + maxVector]byte
	done := c.seriesPasses(scratch[:], dst, src, s, d)
	wipe(&scratch)
	return done
}

func (c *Cipher) seriesPasses(scratch, dst, src []byte, s *series, d direction) (done int) {
	p := c.passes()
	for n := p.size(len(src)); n > 0; n = p.size(len(src) - done) {
		dst, src := dst[done:], src[done:done+n]
		c.fillSeries(scratch, src, s)
		switch s.kind {
		case tweaks:
			c.crypt(dst, src, scratch, scratch, d)
		case counters:
			c.crypt(dst, scratch[:n], zeros[:], src, encrypting)
		case ciphertexts:
			c.crypt(dst, src, zeros[:], scratch, decrypting)
		}
		done += n
	}
	return done
}

// fillSeries writes to dst what the blocks of src are combined with. It may
// write up to maxVector bytes more.
func (c *Cipher) fillSeries(dst, src []byte, s *series) {
	for len(src) > 0 {
		s.begin()
		n := min(s.left, len(src))
		c.fillSector(dst, src[:n], s)
		s.left -= n
		dst, src = dst[n:], src[n:]
	}
}

// fillSector does the same for blocks of one sector.
func (c *Cipher) fillSector(dst, src []byte, s *series) {
	n := len(src)
	filled := false
	switch s.kind {
	case tweaks:
		filled = c.fillTweaks(dst, n, &s.next)
	case counters:
		filled = c.fillCounters(dst, n, s.next.counter())
	case ciphertexts:
		s.next.store(dst)
		copy(dst[BlockSize:n], src)
		// The plaintext may take its place.
		s.next = loadBlock(src[n-BlockSize:])
		return
	}
	if filled {
		s.next = s.after(loadBlock(dst[n-BlockSize:]))
		return
	}
	for at := 0; at < n; at += BlockSize {
		s.next.store(dst[at:])
		s.next = s.after(s.next)
	}
}

// fillTweaks fills n bytes of dst with tweaks, if the kernel can.
func (c *Cipher) fillTweaks(dst []byte, n int, first *block) (done bool) {
	_ = dst[n+maxVector-1]
	// A block is two little-endian words, here in memory, too.
	words := (*[2]uint64)(unsafe.Pointer(first))
	switch c.kernel {
	case AVX2:
		tweaksAVX2(&dst[0], words, (n+31)/32)
	case AVX512:
		tweaksAVX512(&dst[0], words, (n+63)/64)
	default:
		return false
	}
	return true
}

// fillCounters fills n bytes of dst with counter blocks, if the kernel can and
// the low half of none overflows.
func (c *Cipher) fillCounters(dst []byte, n int, first counter) (done bool) {
	_ = dst[n+maxVector-1]
	if first.lo > -(uint64(n+maxVector) / BlockSize) {
		return false
	}
	words := [2]uint64{first.lo, first.hi}
	switch c.kernel {
	case AVX2:
		countersAVX2(&dst[0], &words, (n+31)/32)
	case AVX512:
		countersAVX512(&dst[0], &words, (n+63)/64)
	default:
		return false
	}
	return true
}
