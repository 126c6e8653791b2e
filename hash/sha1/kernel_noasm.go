//go:build !(amd64 || 386) || purego

package sha1

func assemblyKernels() []Kernel { return nil }

// compress takes whole blocks of p and then of tail into the hash value src,
// and puts the outcome into dst. dst may be src.
func compress(k Kernel, dst, src *[Size]byte, p, tail []byte) { compressPortable(k, dst, src, p, tail) }

// finish takes what remains of a message of the given length into the hash value
// src, and puts the digest into sum: whole blocks of p, and then the last
// bytes%BlockSize bytes, which are in tail, where zeros follow.
func finish(k Kernel, sum, src *[Size]byte, p []byte, tail *[BlockSize]byte, bytes uint64) {
	finishPadded(k, sum, src, p, tail, bytes)
}
