//go:build !purego

package sha1

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

// requirements are the CPU features that each kernel of assembly needs, the
// slowest kernel first.
var requirements = []struct {
	kernel   Kernel
	features []cpuid.FeatureID
}{
	{Scalar, []cpuid.FeatureID{cpuid.SSE2}},
	{AVX2, []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX2, cpuid.BMI2}},
	{SHANI, []cpuid.FeatureID{cpuid.SSE2, cpuid.SSSE3, cpuid.SHA}},
}

func assemblyKernels() []Kernel { return usable(&cpuid.CPU) }

func usable(cpu *cpuid.CPUInfo) (kernels []Kernel) {
	for _, r := range requirements {
		if cpu.Supports(r.features...) {
			kernels = append(kernels, r.kernel)
		}
	}
	return kernels
}

// Each kernel reads a constant from memory of its own, so that a test can tell
// which one has worked.
var (
	scalarFirstConstant = roundConstants[0]
	avx2Constants       = newAVX2Constants()
	shaniConstants      = [16 + 2*BlockSize]byte{0: 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 16 + BlockSize: paddingMark}
)

// vectorConstants are those of compressAVX2, and the first constant for the
// blocks that it leaves over.
type vectorConstants struct {
	forVectors [4*8 + 8]uint32
	first      uint32
}

func newAVX2Constants() (c vectorConstants) {
	for i := range 4 * 8 {
		c.forVectors[i] = roundConstants[i/8]
	}
	for i := range 8 {
		c.forVectors[4*8+i] = 0x00010203 + 0x04040404*uint32(i%4)
	}
	c.first = roundConstants[0]
	return c
}

// compress takes whole blocks of p and then of tail into the hash value src,
// and puts the outcome into dst. dst may be src.
func compress(k Kernel, dst, src *[Size]byte, p, tail []byte) {
	pBlocks, tailBlocks := len(p)/BlockSize, len(tail)/BlockSize
	switch k {
	case SHANI:
		compressSHANI(dst, src, unsafe.SliceData(p), pBlocks, nil, 0, 0, 0, &shaniConstants)
		if tailBlocks > 0 {
			compressSHANI(dst, dst, unsafe.SliceData(tail), tailBlocks, nil, 0, 0, 0, &shaniConstants)
		}
	case AVX2:
		compressByPairs(dst, src, p, tail)
	case Scalar:
		var words [16]uint32
		compressScalar(dst, src, unsafe.SliceData(p), pBlocks, unsafe.SliceData(tail), tailBlocks, &scalarFirstConstant, &words)
	default:
		compressPortable(k, dst, src, p, tail)
	}
}

// minPairs is how many pairs of blocks compressAVX2 needs to be faster than
// compressScalar: before the first rounds it computes two whole schedules.
const minPairs = 5

// compressByPairs is compress by AVX2 as far as that is of use.
func compressByPairs(dst, src *[Size]byte, p, tail []byte) {
	if pairs := len(p) / (2 * BlockSize); pairs >= minPairs {
		var words [2 * 2 * 80]uint32
		*dst = *src
		compressAVX2(dst, unsafe.SliceData(p), pairs, &avx2Constants.forVectors, &words)
		src, p = dst, p[pairs*2*BlockSize:]
	}
	var words [16]uint32
	compressScalar(dst, src, unsafe.SliceData(p), len(p)/BlockSize, unsafe.SliceData(tail), len(tail)/BlockSize, &avx2Constants.first, &words)
}

// finish takes what remains of a message of the given length into the hash value
// src, and puts the digest into sum: whole blocks of p, and then the last
// bytes%BlockSize bytes, which are in tail, where zeros follow.
func finish(k Kernel, sum, src *[Size]byte, p []byte, tail *[BlockSize]byte, bytes uint64) {
	if k != SHANI {
		finishPadded(k, sum, src, p, tail, bytes)
		return
	}
	n := int(bytes % BlockSize)
	compressSHANI(sum, src, unsafe.SliceData(p), len(p)/BlockSize, tail, n, tailBlocks(n), int(bytes*8), &shaniConstants)
}
