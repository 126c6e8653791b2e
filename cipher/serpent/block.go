package serpent

import (
	"encoding/binary"
	"math/bits"
)

// block is a block as two little-endian words.
type block struct{ lo, hi uint64 }

func loadBlock(src []byte) block {
	_ = src[BlockSize-1]
	return block{binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:])}
}

func (x block) store(dst []byte) {
	_ = dst[BlockSize-1]
	binary.LittleEndian.PutUint64(dst, x.lo)
	binary.LittleEndian.PutUint64(dst[8:], x.hi)
}

func (x block) xor(y block) block { return block{x.lo ^ y.lo, x.hi ^ y.hi} }

// double multiplies an XTS tweak by alpha: the block as a polynomial over
// GF(2), first bit lowest, modulo x^128 + x^7 + x^2 + x + 1 (IEEE 1619-2018,
// 5.2).
func (x block) double() block {
	carry := uint64(int64(x.hi) >> 63) // all ones or zero
	return block{x.lo<<1 ^ carry&0x87, x.hi<<1 | x.lo>>63}
}

// counter is a counter block of CTR mode: a big-endian number of 128 bits.
type counter struct{ hi, lo uint64 }

func (x block) counter() counter {
	return counter{bits.ReverseBytes64(x.lo), bits.ReverseBytes64(x.hi)}
}

func (n counter) next() counter {
	lo, carry := bits.Add64(n.lo, 1, 0)
	return counter{n.hi + carry, lo}
}

func (n counter) block() block {
	return block{bits.ReverseBytes64(n.hi), bits.ReverseBytes64(n.lo)}
}
