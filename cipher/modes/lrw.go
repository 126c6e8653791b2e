package modes

import (
	"encoding/binary"
	"math/bits"

	"serpcrypt/cipher/serpent"
)

// LRW (IEEE P1619 draft of 2004) adds to each block, before and after the
// cipher, the product of the block's 128-bit number and the tweak key in
// GF(2^128) modulo x^128 + x^7 + x^2 + x + 1. Numbers and elements are read
// as big-endian; the lowest bit is the coefficient of 1.

const lrwTweakKeySize = 16

type element struct{ high, low uint64 }

func (e element) plus(f element) element {
	return element{e.high ^ f.high, e.low ^ f.low}
}

func (e element) timesX() element {
	carry := -(e.high >> 63)
	return element{e.high<<1 | e.low>>63, e.low<<1 ^ carry&0x87}
}

// lrwTable holds at i the tweak key times 2^(i+1)-1, in bits: i+1 ones. That
// is what the product changes by when the block number is counted up and its
// lowest zero is bit i. Table addresses depend on block numbers only, which
// are no secret.
type lrwTable [128]element

func (t *lrwTable) init(tweakKey []byte) {
	power := element{binary.BigEndian.Uint64(tweakKey), binary.BigEndian.Uint64(tweakKey[8:])}
	var sum element
	for i := range t {
		sum = sum.plus(power)
		t[i] = sum
		power = power.timesX()
	}
}

// times returns the tweak key times n. A number is a sum of runs of ones, and
// where they begin and end are the bits of its Gray code.
func (t *lrwTable) times(n element) element {
	var product element
	for gray := n.low ^ (n.low>>1 | n.high<<63); gray != 0; gray &= gray - 1 {
		product = product.plus(t[bits.TrailingZeros64(gray)])
	}
	for gray := n.high ^ n.high>>1; gray != 0; gray &= gray - 1 {
		product = product.plus(t[64+bits.TrailingZeros64(gray)])
	}
	return product
}

// fillTweaks writes a tweak for each 16 bytes of tweaks. The first is for the
// block whose number is in iv; numbers wrap around at 2^128.
func (t *lrwTable) fillTweaks(tweaks, iv []byte) {
	first := element{binary.BigEndian.Uint64(iv), binary.BigEndian.Uint64(iv[8:])}
	product := t.times(first)
	for low := first.low; len(tweaks) >= serpent.BlockSize; tweaks = tweaks[serpent.BlockSize:] {
		binary.BigEndian.PutUint64(tweaks, product.high)
		binary.BigEndian.PutUint64(tweaks[8:], product.low)
		lowestZero := bits.TrailingZeros64(^low)
		if low++; low == 0 {
			// A run is too short to get here twice, so that first.high still
			// holds. With no zero at all the product becomes 0: the last entry.
			lowestZero = min(64+bits.TrailingZeros64(^first.high), len(t)-1)
		}
		product = product.plus(t[lowestZero])
	}
}
