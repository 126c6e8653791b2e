package sha1

import (
	"encoding/binary"
	"math/bits"
)

// roundConstants are those of the four groups of 20 rounds (FIPS 180-4, 4.2.1).
var roundConstants = [4]uint32{k0, k1, k2, k3}

// compressPortable is compress by code that all CPUs run.
func compressPortable(k Kernel, dst, src *[Size]byte, p, tail []byte) {
	var words [5]uint32
	for i := range words {
		words[i] = binary.BigEndian.Uint32(src[4*i:])
	}
	for _, part := range [...][]byte{p, tail} {
		if k == Looped {
			compressLooped(&words, part)
		} else {
			compressGeneric(&words, part)
		}
	}
	for i := range words { // not over the values, which would be those of a copy
		binary.BigEndian.PutUint32(dst[4*i:], words[i])
	}
	wipe(&words)
}

// loopedConstants are compressLooped's own, so that a test can tell whether it
// has worked.
var loopedConstants = roundConstants

// compressLooped is compressGeneric with its rounds in loops, which is less
// code: on CPUs with small caches for instructions it can be the faster one.
func compressLooped(state *[5]uint32, p []byte) {
	var w [16]uint32
	k := &loopedConstants
	for ; len(p) >= BlockSize; p = p[BlockSize:] {
		for i := range w {
			w[i] = binary.BigEndian.Uint32(p[4*i:])
		}
		a, b, c, d, e := state[0], state[1], state[2], state[3], state[4]
		i := 0
		for ; i < 16; i++ {
			e += w[i] + k[0] + choose(b, c, d) + bits.RotateLeft32(a, 5)
			a, b, c, d, e = e, a, bits.RotateLeft32(b, 30), c, d
		}
		for ; i < 20; i++ {
			e += expand(&w, i) + k[0] + choose(b, c, d) + bits.RotateLeft32(a, 5)
			a, b, c, d, e = e, a, bits.RotateLeft32(b, 30), c, d
		}
		for ; i < 40; i++ {
			e += expand(&w, i) + k[1] + parity(b, c, d) + bits.RotateLeft32(a, 5)
			a, b, c, d, e = e, a, bits.RotateLeft32(b, 30), c, d
		}
		for ; i < 60; i++ {
			e += expand(&w, i) + k[2] + majority(b, c, d) + bits.RotateLeft32(a, 5)
			a, b, c, d, e = e, a, bits.RotateLeft32(b, 30), c, d
		}
		for ; i < 80; i++ {
			e += expand(&w, i) + k[3] + parity(b, c, d) + bits.RotateLeft32(a, 5)
			a, b, c, d, e = e, a, bits.RotateLeft32(b, 30), c, d
		}
		state[0] += a
		state[1] += b
		state[2] += c
		state[3] += d
		state[4] += e
	}
	wipe(&w)
}

// wipe is not inlined, so that no compiler can leave it out.
//
//go:noinline
func wipe[T any](v *T) {
	var zero T
	*v = zero
}
