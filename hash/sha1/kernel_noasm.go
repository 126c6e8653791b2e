//go:build !(amd64 || 386) || purego

package sha1

func assemblyKernels() []Kernel { return nil }

// compress takes whole blocks of p and then of tail into the hash value src,
// and puts the outcome into dst. dst may be src.
func compress(k Kernel, dst, src *[Size]byte, p, tail []byte) { compressPortable(k, dst, src, p, tail) }
