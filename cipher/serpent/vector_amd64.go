//go:build !purego

package serpent

import "github.com/klauspost/cpuid/v2"

// requirements are the CPU features that each vector kernel needs, the slowest
// kernel first. The package cpuid reports those of AVX only if the system saves
// the registers.
var requirements = []struct {
	kernel   Kernel
	features []cpuid.FeatureID
}{
	{SSE2, []cpuid.FeatureID{cpuid.SSE2}},
	{AVX2, []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX, cpuid.AVX2}},
	{AVX512, []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX, cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL}},
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

var zeros [maxPass]byte

// crypt encrypts or decrypts src, of the size of a pass, XORed with before, and
// XORs the outcome with after. dst may be any of the others.
func (c *Cipher) crypt(dst, src, before, after []byte, d direction) {
	blocks := len(src) / BlockSize
	if room := c.passes().room(blocks); room > blocks {
		c.cryptPart(room, dst, src, before, after, d)
		return
	}
	c.cryptPass(blocks, dst, src, before, after, d)
}

// cryptPart is crypt for a pass with room for more blocks than there are.
func (c *Cipher) cryptPart(room int, dst, src, before, after []byte, d direction) {
	if min(len(before), len(after)) < room*BlockSize {
		var first, last [maxGroup]byte
		copy(first[:len(src)], before)
		copy(last[:len(src)], after)
		c.cryptPart(room, dst, src, first[:], last[:], d)
		wipe(&first)
		wipe(&last)
		return
	}
	c.cryptCopy(room, dst, src, before, after, d)
}

func (c *Cipher) cryptCopy(room int, dst, src, before, after []byte, d direction) {
	var text [maxGroup]byte
	copy(text[:], src)
	c.cryptPass(room, text[:], text[:], before, after, d)
	copy(dst[:len(src)], text[:])
	wipe(&text)
}

func (c *Cipher) cryptPass(blocks int, dst, src, before, after []byte, d direction) {
	last := blocks*BlockSize - 1
	_, _, _, _ = dst[last], src[last], before[last], after[last]
	v := &c.vector
	switch {
	case c.kernel == SSE2 && d == encrypting:
		encryptSSE2(&dst[0], &src[0], &before[0], &after[0], blocks, &v.sse2.encrypt)
	case c.kernel == SSE2:
		decryptSSE2(&dst[0], &src[0], &before[0], &after[0], blocks, &v.sse2.decrypt)
	case c.kernel == AVX2 && d == encrypting:
		encryptAVX2(&dst[0], &src[0], &before[0], &after[0], blocks, &v.avx2.encrypt)
	case c.kernel == AVX2:
		decryptAVX2(&dst[0], &src[0], &before[0], &after[0], blocks, &v.avx2.decrypt)
	case c.kernel == AVX512 && d == encrypting:
		encryptAVX512(&dst[0], &src[0], &before[0], &after[0], blocks, &v.avx512.encrypt)
	case c.kernel == AVX512:
		decryptAVX512(&dst[0], &src[0], &before[0], &after[0], blocks, &v.avx512.decrypt)
	}
}

// Each of the following does what its portable twin does with as much as the
// kernel's passes take, and returns how many bytes that is.

func (c *Cipher) blocksVector(dst, src []byte, d direction) (done int) {
	p := c.passes()
	for n := p.size(len(src)); n > 0; n = p.size(len(src) - done) {
		c.crypt(dst[done:], src[done:done+n], zeros[:], zeros[:], d)
		done += n
	}
	return done
}

func (c *Cipher) xexVector(dst, src, tweaks []byte, d direction) (done int) {
	p := c.passes()
	for n := p.size(len(src)); n > 0; n = p.size(len(src) - done) {
		c.crypt(dst[done:], src[done:done+n], tweaks[done:], tweaks[done:], d)
		done += n
	}
	return done
}
