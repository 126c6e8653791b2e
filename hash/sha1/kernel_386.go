//go:build !purego

package sha1

import "unsafe"

func assemblyKernels() []Kernel { return []Kernel{Scalar} }

// scalarFirstConstant is the kernel's own, so that a test can tell whether it
// has worked.
var scalarFirstConstant = roundConstants[0]

// compress takes whole blocks of p and then of tail into the hash value src,
// and puts the outcome into dst. dst may be src.
func compress(k Kernel, dst, src *[Size]byte, p, tail []byte) {
	if k != Scalar {
		compressPortable(k, dst, src, p, tail)
		return
	}
	var words [16]uint32
	compressScalar(dst, src, unsafe.SliceData(p), len(p)/BlockSize, unsafe.SliceData(tail), len(tail)/BlockSize, &scalarFirstConstant, &words)
}

// finish takes what remains of a message of the given length into the hash value
// src, and puts the digest into sum: whole blocks of p, and then the last
// bytes%BlockSize bytes, which are in tail, where zeros follow.
func finish(k Kernel, sum, src *[Size]byte, p []byte, tail *[BlockSize]byte, bytes uint64) {
	finishPadded(k, sum, src, p, tail, bytes)
}
