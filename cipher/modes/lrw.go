package modes

import (
	"encoding/binary"

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

// lrwTable holds at [i][d] the tweak key times d shifted left by 4i bits, so
// that a product is the sum of one entry for each hexadecimal digit of the
// block number. Addresses depend on block numbers only, and LRW does not need
// these to be secret.
type lrwTable [32][16]element

func (t *lrwTable) init(tweakKey []byte) {
	power := element{binary.BigEndian.Uint64(tweakKey), binary.BigEndian.Uint64(tweakKey[8:])}
	for i := range t {
		for bit := 1; bit < 16; bit *= 2 {
			for d := range bit {
				t[i][bit+d] = t[i][d].plus(power)
			}
			power = power.timesX()
		}
	}
}

// times returns the tweak key times n.
func (t *lrwTable) times(n element) element {
	var product element
	for i := 0; n.low != 0; i, n.low = i+1, n.low>>4 {
		product = product.plus(t[i&15][n.low&15])
	}
	for i := 16; n.high != 0; i, n.high = i+1, n.high>>4 {
		product = product.plus(t[i&31][n.high&15])
	}
	return product
}

// fillTweaks writes a tweak for each 16 bytes of tweaks. The first is for the
// block whose number is in iv; numbers wrap around at 2^128.
func (t *lrwTable) fillTweaks(tweaks, iv []byte) {
	n := element{binary.BigEndian.Uint64(iv), binary.BigEndian.Uint64(iv[8:])}
	lastDigit := n.low & 15
	n.low -= lastDigit
	product := t.times(n)
	for {
		for ; lastDigit < 16; lastDigit++ {
			if len(tweaks) < serpent.BlockSize {
				return
			}
			tweak := product.plus(t[0][lastDigit])
			binary.BigEndian.PutUint64(tweaks, tweak.high)
			binary.BigEndian.PutUint64(tweaks[8:], tweak.low)
			tweaks = tweaks[serpent.BlockSize:]
		}
		lastDigit = 0
		next := element{n.high, n.low + 16}
		if next.low == 0 {
			next.high++
		}
		// The product of a sum is the sum of the products, and few digits change.
		product = product.plus(t.times(n.plus(next)))
		n = next
	}
}
