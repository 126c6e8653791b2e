package serpent

import (
	"crypto/cipher"
	"encoding/binary"
	"math/bits"
)

// reference is Serpent as its authors describe it, with S-boxes as tables:
// slow, and independent of all other code here ("Serpent: A Proposal for the
// Advanced Encryption Standard", 1998, sections 2 and 4 and appendix A.5).
type reference struct{ keys [33][4]uint32 }

var _ cipher.Block = (*reference)(nil)

var sboxTables = [8][16]byte{
	{3, 8, 15, 1, 10, 6, 5, 11, 14, 13, 4, 2, 7, 0, 9, 12},
	{15, 12, 2, 7, 9, 0, 5, 10, 1, 11, 14, 8, 6, 13, 3, 4},
	{8, 6, 7, 9, 3, 12, 10, 15, 13, 1, 14, 4, 0, 11, 5, 2},
	{0, 15, 11, 8, 12, 9, 6, 3, 13, 1, 2, 4, 10, 7, 5, 14},
	{1, 15, 8, 3, 12, 0, 11, 6, 2, 5, 4, 10, 9, 14, 7, 13},
	{15, 5, 2, 11, 4, 10, 9, 12, 0, 3, 14, 8, 13, 6, 7, 1},
	{7, 2, 12, 5, 8, 4, 6, 11, 14, 9, 1, 15, 13, 3, 10, 0},
	{1, 13, 15, 0, 14, 8, 2, 11, 7, 4, 12, 10, 9, 3, 5, 6},
}

func newReference(key []byte) *reference {
	padded := make([]byte, 32)
	if copy(padded, key); len(key) < 32 {
		padded[len(key)] = 1
	}
	var w [140]uint32
	for i := range 8 {
		w[i] = binary.LittleEndian.Uint32(padded[4*i:])
	}
	r := new(reference)
	for i := 8; i < 140; i++ {
		w[i] = bits.RotateLeft32(w[i-8]^w[i-5]^w[i-3]^w[i-1]^0x9e3779b9^uint32(i-8), 11)
	}
	for i := range r.keys {
		r.keys[i] = substitute([4]uint32(w[8+4*i:]), &sboxTables[(3-i+32)%8])
	}
	return r
}

// substitute looks up the four bits at each position.
func substitute(x [4]uint32, table *[16]byte) (y [4]uint32) {
	for i := range 32 {
		in := x[0]>>i&1 | x[1]>>i&1<<1 | x[2]>>i&1<<2 | x[3]>>i&1<<3
		out := uint32(table[in])
		for j := range y {
			y[j] |= out >> j & 1 << i
		}
	}
	return y
}

func inverse(table *[16]byte) *[16]byte {
	var inv [16]byte
	for in, out := range table {
		inv[out] = byte(in)
	}
	return &inv
}

func (r *reference) BlockSize() int { return 16 }

func (r *reference) Encrypt(dst, src []byte) {
	x := r.load(src)
	for i := range 32 {
		x = substitute(xor4(x, r.keys[i]), &sboxTables[i%8])
		if i == 31 {
			break
		}
		x[0] = bits.RotateLeft32(x[0], 13)
		x[2] = bits.RotateLeft32(x[2], 3)
		x[1] ^= x[0] ^ x[2]
		x[3] ^= x[2] ^ x[0]<<3
		x[1] = bits.RotateLeft32(x[1], 1)
		x[3] = bits.RotateLeft32(x[3], 7)
		x[0] ^= x[1] ^ x[3]
		x[2] ^= x[3] ^ x[1]<<7
		x[0] = bits.RotateLeft32(x[0], 5)
		x[2] = bits.RotateLeft32(x[2], 22)
	}
	r.store(dst, xor4(x, r.keys[32]))
}

func (r *reference) Decrypt(dst, src []byte) {
	x := xor4(r.load(src), r.keys[32])
	for i := 31; i >= 0; i-- {
		if i < 31 {
			x[2] = bits.RotateLeft32(x[2], -22)
			x[0] = bits.RotateLeft32(x[0], -5)
			x[2] ^= x[3] ^ x[1]<<7
			x[0] ^= x[1] ^ x[3]
			x[3] = bits.RotateLeft32(x[3], -7)
			x[1] = bits.RotateLeft32(x[1], -1)
			x[3] ^= x[2] ^ x[0]<<3
			x[1] ^= x[0] ^ x[2]
			x[2] = bits.RotateLeft32(x[2], -3)
			x[0] = bits.RotateLeft32(x[0], -13)
		}
		x = xor4(substitute(x, inverse(&sboxTables[i%8])), r.keys[i])
	}
	r.store(dst, x)
}

func (r *reference) load(src []byte) (x [4]uint32) {
	for i := range x {
		x[i] = binary.LittleEndian.Uint32(src[4*i:])
	}
	return x
}

func (r *reference) store(dst []byte, x [4]uint32) {
	for i := range x {
		binary.LittleEndian.PutUint32(dst[4*i:], x[i])
	}
}

func xor4(x, y [4]uint32) [4]uint32 {
	return [4]uint32{x[0] ^ y[0], x[1] ^ y[1], x[2] ^ y[2], x[3] ^ y[3]}
}
