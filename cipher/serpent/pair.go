package serpent

import "math/bits"

// The portable code works on two blocks at a time. A pairWord holds one 32-bit
// word of both, interleaved bit by bit: bit i of the first block's word is bit
// 2i, that of the second block's is bit 2i+1. So rotating both by n is one
// rotation of 64 bits by 2n.
type pairWord = uint64

// pairKeys are round keys in the form of the portable code, each bit doubled.
type pairKeys [33][4]pairWord

// encryptPair encrypts two blocks.
func encryptPair(k *pairKeys, x, y block) (_, _ block) {
	a, b := interleave(x.lo, y.lo)
	c, d := interleave(x.hi, y.hi)
	for r := 0; ; r += 8 {
		k := (*[9][4]pairWord)(k[r : r+9])
		a, b, c, d = linear(sbox0(a^k[0][0], b^k[0][1], c^k[0][2], d^k[0][3]))
		a, b, c, d = linear(sbox1(a^k[1][0], b^k[1][1], c^k[1][2], d^k[1][3]))
		a, b, c, d = linear(sbox2(a^k[2][0], b^k[2][1], c^k[2][2], d^k[2][3]))
		a, b, c, d = linear(sbox3(a^k[3][0], b^k[3][1], c^k[3][2], d^k[3][3]))
		a, b, c, d = linear(sbox4(a^k[4][0], b^k[4][1], c^k[4][2], d^k[4][3]))
		a, b, c, d = linear(sbox5(a^k[5][0], b^k[5][1], c^k[5][2], d^k[5][3]))
		a, b, c, d = linear(sbox6(a^k[6][0], b^k[6][1], c^k[6][2], d^k[6][3]))
		a, b, c, d = sbox7(a^k[7][0], b^k[7][1], c^k[7][2], d^k[7][3])
		if r == 24 {
			x.lo, y.lo = deinterleave(a^k[8][0], b^k[8][1])
			x.hi, y.hi = deinterleave(c^k[8][2], d^k[8][3])
			return x, y
		}
		a, b, c, d = linear(a, b, c, d)
	}
}

// decryptPair is the inverse of encryptPair.
func decryptPair(k *pairKeys, x, y block) (_, _ block) {
	a, b := interleave(x.lo, y.lo)
	c, d := interleave(x.hi, y.hi)
	a, b, c, d = a^k[32][0], b^k[32][1], c^k[32][2], d^k[32][3]
	for r := 24; ; r -= 8 {
		k := (*[8][4]pairWord)(k[r : r+8])
		a, b, c, d = inverseSbox7(a, b, c, d)
		a, b, c, d = inverseSbox6(inverseLinear(a^k[7][0], b^k[7][1], c^k[7][2], d^k[7][3]))
		a, b, c, d = inverseSbox5(inverseLinear(a^k[6][0], b^k[6][1], c^k[6][2], d^k[6][3]))
		a, b, c, d = inverseSbox4(inverseLinear(a^k[5][0], b^k[5][1], c^k[5][2], d^k[5][3]))
		a, b, c, d = inverseSbox3(inverseLinear(a^k[4][0], b^k[4][1], c^k[4][2], d^k[4][3]))
		a, b, c, d = inverseSbox2(inverseLinear(a^k[3][0], b^k[3][1], c^k[3][2], d^k[3][3]))
		a, b, c, d = inverseSbox1(inverseLinear(a^k[2][0], b^k[2][1], c^k[2][2], d^k[2][3]))
		a, b, c, d = inverseSbox0(inverseLinear(a^k[1][0], b^k[1][1], c^k[1][2], d^k[1][3]))
		a, b, c, d = a^k[0][0], b^k[0][1], c^k[0][2], d^k[0][3]
		if r == 0 {
			x.lo, y.lo = deinterleave(a, b)
			x.hi, y.hi = deinterleave(c, d)
			return x, y
		}
		a, b, c, d = inverseLinear(a, b, c, d)
	}
}

func linear(a, b, c, d pairWord) (_, _, _, _ pairWord) {
	a = bits.RotateLeft64(a, 2*13)
	c = bits.RotateLeft64(c, 2*3)
	b ^= a ^ c
	d ^= c ^ a<<(2*3)
	b = bits.RotateLeft64(b, 2*1)
	d = bits.RotateLeft64(d, 2*7)
	a ^= b ^ d
	c ^= d ^ b<<(2*7)
	return bits.RotateLeft64(a, 2*5), b, bits.RotateLeft64(c, 2*22), d
}

func inverseLinear(a, b, c, d pairWord) (_, _, _, _ pairWord) {
	c = bits.RotateLeft64(c, -2*22)
	a = bits.RotateLeft64(a, -2*5)
	c ^= d ^ b<<(2*7)
	a ^= b ^ d
	d = bits.RotateLeft64(d, -2*7)
	b = bits.RotateLeft64(b, -2*1)
	d ^= c ^ a<<(2*3)
	b ^= a ^ c
	return bits.RotateLeft64(a, -2*13), b, bits.RotateLeft64(c, -2*3), d
}

// interleave makes pair words of two 32-bit words each of two blocks: first
// of the low halves, then of the high halves. Each step moves one bit of the
// position within a word to where the number of the block was.
func interleave(x, y uint64) (low, high pairWord) {
	x, y = exchange(x, y, 1, 0x5555555555555555)
	x, y = exchange(x, y, 2, 0x3333333333333333)
	x, y = exchange(x, y, 4, 0x0f0f0f0f0f0f0f0f)
	x, y = exchange(x, y, 8, 0x00ff00ff00ff00ff)
	x, y = exchange(x, y, 16, 0x0000ffff0000ffff)
	return exchange(x, y, 32, 0x00000000ffffffff)
}

// deinterleave is the inverse of interleave.
func deinterleave(low, high pairWord) (x, y uint64) {
	x, y = exchange(low, high, 32, 0x00000000ffffffff)
	x, y = exchange(x, y, 16, 0x0000ffff0000ffff)
	x, y = exchange(x, y, 8, 0x00ff00ff00ff00ff)
	x, y = exchange(x, y, 4, 0x0f0f0f0f0f0f0f0f)
	x, y = exchange(x, y, 2, 0x3333333333333333)
	return exchange(x, y, 1, 0x5555555555555555)
}

// exchange swaps the bits of x that are n to the left of mask with the bits of
// y in mask.
func exchange(x, y uint64, n int, mask uint64) (_, _ uint64) {
	t := (x>>n ^ y) & mask
	return x ^ t<<n, y ^ t
}
