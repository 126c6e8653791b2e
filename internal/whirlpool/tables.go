package whirlpool

// The S-box is made of the mini-boxes E, its inverse and R, of four bits each
// ("The Whirlpool Hashing Function", section 3.2 and appendix B).
var (
	miniE = [16]byte{0x1, 0xb, 0x9, 0xc, 0xd, 0x6, 0xf, 0x3, 0xe, 0x8, 0x7, 0x4, 0xa, 0x2, 0x5, 0x0}
	miniR = [16]byte{0x7, 0xc, 0xb, 0xd, 0xe, 0x4, 0x9, 0xf, 0x6, 0x3, 0x8, 0xa, 0x2, 0x5, 0x1, 0x0}
)

var sbox = func() (s [256]byte) {
	var inverseE [16]byte
	for x, y := range miniE {
		inverseE[y] = byte(x)
	}
	for x := range s {
		high, low := miniE[x>>4], inverseE[x&15]
		r := miniR[high^low]
		s[x] = miniE[high^r]<<4 | inverseE[low^r]
	}
	return s
}()

// matrixRow is the first row of the circulant matrix; each other is the one
// above it, rotated right by a byte.
var matrixRow = [8]byte{1, 1, 4, 1, 8, 5, 2, 9}

// rows holds for each byte what its S-box value makes of the matrix's first
// row.
var rows = func() (t [256]uint64) {
	for x, s := range sbox {
		for _, m := range matrixRow {
			t[x] = t[x]<<8 | uint64(multiply(s, m))
		}
	}
	return t
}()

// roundConstants are the first rows of the round constants, which are the
// S-box in turn; the others are zeros.
var roundConstants = func() (c [rounds]uint64) {
	for i, s := range sbox[:8*rounds] {
		c[i/8] = c[i/8]<<8 | uint64(s)
	}
	return c
}()

// multiply is the product in GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1.
func multiply(a, b byte) (product byte) {
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			product ^= a
		}
		carry := a >> 7
		a = a<<1 ^ carry*0x1d
	}
	return product
}
