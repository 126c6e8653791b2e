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
