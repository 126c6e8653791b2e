//go:build !purego

package serpent

import "github.com/klauspost/cpuid/v2"

// laneKeys are round keys in the form of the SSE2 kernel: each word in all
// four lanes.
type laneKeys = [33][4][4]uint32

// vectorKeys are the round keys of the vector kernels. The portable code has
// its own, so that a test can tell which of the two has worked.
type vectorKeys struct{ encrypt, decrypt laneKeys }

func (v *vectorKeys) set(encrypt, decrypt *roundKeys) {
	encrypt.lanes(&v.encrypt)
	decrypt.lanes(&v.decrypt)
}

// lanes fills in the form of the SSE2 kernel.
func (k *roundKeys) lanes(l *laneKeys) {
	for r := range k {
		for i, word := range k[r] {
			l[r][i] = [4]uint32{word, word, word, word}
		}
	}
}

// requirements are the CPU features that each vector kernel needs, the slowest
// kernel first.
var requirements = []struct {
	kernel   Kernel
	features []cpuid.FeatureID
}{
	{SSE2, []cpuid.FeatureID{cpuid.SSE2}},
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

// What the kernels take per call.
type (
	blocks4  = [4 * BlockSize]byte
	blocks8  = [8 * BlockSize]byte
	blocks16 = [16 * BlockSize]byte
)

// callLen returns how many of n bytes the next call takes: none of fewer than
// four blocks.
func callLen(n int) int {
	switch {
	case n >= len(blocks16{}):
		return len(blocks16{})
	case n >= len(blocks8{}):
		return len(blocks8{})
	case n >= len(blocks4{}):
		return len(blocks4{})
	}
	return 0
}

var zeros blocks16

// crypt encrypts or decrypts n bytes of src, XORed with those of before, and
// XORs the outcome with those of after, where n is of callLen. dst may be any
// of the others.
func (c *Cipher) crypt(n int, dst, src, before, after []byte, d direction) {
	encrypt, decrypt := &c.vector.encrypt, &c.vector.decrypt
	switch {
	case n == len(blocks16{}) && d == encrypting:
		encrypt16SSE2((*blocks16)(dst), (*blocks16)(src), (*blocks16)(before), (*blocks16)(after), encrypt)
	case n == len(blocks16{}):
		decrypt16SSE2((*blocks16)(dst), (*blocks16)(src), (*blocks16)(before), (*blocks16)(after), decrypt)
	case n == len(blocks8{}) && d == encrypting:
		encrypt8SSE2((*blocks8)(dst), (*blocks8)(src), (*blocks8)(before), (*blocks8)(after), encrypt)
	case n == len(blocks8{}):
		decrypt8SSE2((*blocks8)(dst), (*blocks8)(src), (*blocks8)(before), (*blocks8)(after), decrypt)
	case d == encrypting:
		encrypt4SSE2((*blocks4)(dst), (*blocks4)(src), (*blocks4)(before), (*blocks4)(after), encrypt)
	default:
		decrypt4SSE2((*blocks4)(dst), (*blocks4)(src), (*blocks4)(before), (*blocks4)(after), decrypt)
	}
}

// Each of the following does what its portable twin does with as much as
// kernel calls take, and returns how many bytes that is.

func (c *Cipher) blocksVector(dst, src []byte, d direction) (done int) {
	for n := callLen(len(src)); n > 0; n = callLen(len(src) - done) {
		c.crypt(n, dst[done:], src[done:], zeros[:], zeros[:], d)
		done += n
	}
	return done
}

func (c *Cipher) xexVector(dst, src, tweaks []byte, d direction) (done int) {
	for n := callLen(len(src)); n > 0; n = callLen(len(src) - done) {
		c.crypt(n, dst[done:], src[done:], tweaks[done:], tweaks[done:], d)
		done += n
	}
	return done
}

// xtsVector leaves in tweak that of the next block.
func (c *Cipher) xtsVector(dst, src []byte, tweak *block, d direction) (done int) {
	var tweaks blocks16
	for n := callLen(len(src)); n > 0; n = callLen(len(src) - done) {
		*tweak = fillTweaks(tweaks[:n], *tweak)
		c.crypt(n, dst[done:], src[done:], tweaks[:], tweaks[:], d)
		done += n
	}
	wipe(&tweaks)
	return done
}

// fillTweaks fills dst, a multiple of four blocks, with t and those after it,
// and returns the next. In a function of its own the loop needs no memory.
//
//go:noinline
func fillTweaks(dst []byte, t block) block {
	for ; len(dst) > 0; dst = dst[len(blocks4{}):] {
		four := (*blocks4)(dst)
		for i := 0; i < len(four); i += BlockSize {
			t.store(four[i:])
			t = t.double()
		}
	}
	return t
}

// ctrVector leaves in next the counter of the next block.
func (c *Cipher) ctrVector(dst, src []byte, next *counter) (done int) {
	var counters blocks16
	for n := callLen(len(src)); n > 0; n = callLen(len(src) - done) {
		*next = fillCounters(counters[:n], *next)
		c.crypt(n, dst[done:], counters[:], zeros[:], src[done:], encrypting)
		done += n
	}
	return done
}

// fillCounters fills dst, a multiple of four blocks, with n and those after it,
// and returns the next.
//
//go:noinline
func fillCounters(dst []byte, n counter) counter {
	for ; len(dst) > 0; dst = dst[len(blocks4{}):] {
		four := (*blocks4)(dst)
		for i := 0; i < len(four); i += BlockSize {
			n.block().store(four[i:])
			n = n.next()
		}
	}
	return n
}

// decryptCBCVector leaves in iv the last ciphertext.
func (c *Cipher) decryptCBCVector(dst, src []byte, iv *block) (done int) {
	// dst may be src: keep the ciphertext.
	var previous [BlockSize + len(blocks16{})]byte
	for n := callLen(len(src)); n > 0; n = callLen(len(src) - done) {
		iv.store(previous[:])
		copy(previous[BlockSize:], src[done:done+n])
		c.crypt(n, dst[done:], src[done:], zeros[:], previous[:], decrypting)
		*iv = loadBlock(previous[n:])
		done += n
	}
	return done
}

// encryptCBCVector works on whole sectors, one per lane, and returns how many.
func (c *Cipher) encryptCBCVector(dst, src, ivs []byte, sectorSize int) (sectors int) {
	var chain, plain [len(blocks16{})]byte
	for n := callLen(len(ivs)); n > 0; n = callLen(len(ivs)) {
		copy(chain[:n], ivs)
		for i := 0; i < sectorSize; i += BlockSize {
			for lane, at := 0, i; lane < n; lane, at = lane+BlockSize, at+sectorSize {
				loadBlock(src[at:]).store(plain[lane:])
			}
			c.crypt(n, chain[:], plain[:], chain[:], zeros[:], encrypting)
			for lane, at := 0, i; lane < n; lane, at = lane+BlockSize, at+sectorSize {
				loadBlock(chain[lane:]).store(dst[at:])
			}
		}
		lanes := n / BlockSize
		dst, src, ivs = dst[lanes*sectorSize:], src[lanes*sectorSize:], ivs[n:]
		sectors += lanes
	}
	wipe(&plain)
	return sectors
}
