package serpent

import (
	"encoding/binary"
	"math/bits"
)

// roundKeys are the 33 round keys of four words each ("Serpent: A Proposal for
// the Advanced Encryption Standard", 1998, section 4, in its bitslice form).
type roundKeys [33][4]uint32

// expandKey fills in the round keys for the portable code and for kernel k.
func (c *Cipher) expandKey(key []byte, k Kernel) {
	var plain, encrypt, decrypt roundKeys
	plain.expand(key)
	// Both in one assignment would take a copy that nothing wipes.
	encrypt = plain
	decrypt = plain
	encrypt.forEncryption()
	decrypt.forDecryption()
	encrypt.pairs(&c.pairs.encrypt)
	decrypt.pairs(&c.pairs.decrypt)
	c.vector.set(k, &plain, &encrypt, &decrypt)
	wipe(&plain)
	wipe(&encrypt)
	wipe(&decrypt)
}

// expand computes the round keys of a key of 16, 24 or 32 bytes.
func (k *roundKeys) expand(key []byte) {
	const phi = 0x9e3779b9 // the fractional part of the golden ratio
	// w[8:] are the prekeys, w[:8] the key, padded by a one and zeros.
	var w [8 + 4*33]uint32
	for i := range len(key) / 4 {
		w[i] = binary.LittleEndian.Uint32(key[4*i:])
	}
	if len(key) < 32 {
		w[len(key)/4] = 1
	}
	for i := 8; i < len(w); i++ {
		w[i] = bits.RotateLeft32(w[i-8]^w[i-5]^w[i-3]^w[i-1]^phi^uint32(i-8), 11)
	}
	for r := range k {
		box := (3 - r) & 7
		x := sbox(box, [4]uint32(w[8+4*r:]))
		for i := range x {
			k[r][i] = x[i] ^ sboxComplement[box][i]
		}
	}
	wipe(&w)
}

// forEncryption makes the keys take up the words that the S-boxes leave
// complemented.
func (k *roundKeys) forEncryption() {
	for r := range 32 {
		m := &sboxComplement[r%8]
		a, b, c, d := m[0], m[1], m[2], m[3]
		if r < 31 {
			a, b, c, d = linear32(a, b, c, d)
		}
		k.xor(r+1, a, b, c, d)
	}
}

// forDecryption does the same for the inverse S-boxes.
func (k *roundKeys) forDecryption() {
	for r := range 32 {
		m := &inverseSboxComplement[r%8]
		k.xor(r, m[0], m[1], m[2], m[3])
	}
}

func (k *roundKeys) xor(r int, a, b, c, d uint32) {
	k[r][0] ^= a
	k[r][1] ^= b
	k[r][2] ^= c
	k[r][3] ^= d
}

// pairs fills in the form of the portable code.
func (k *roundKeys) pairs(p *pairKeys) {
	for r := range k {
		for i, word := range k[r] {
			p[r][i], _ = interleave(uint64(word), uint64(word))
		}
	}
}

// sbox applies one S-box, with its complements, to four words.
func sbox(box int, x [4]uint32) [4]uint32 {
	f := [8]func(a, b, c, d uint64) (_, _, _, _ uint64){sbox0, sbox1, sbox2, sbox3, sbox4, sbox5, sbox6, sbox7}[box]
	a, b, c, d := f(uint64(x[0]), uint64(x[1]), uint64(x[2]), uint64(x[3]))
	return [4]uint32{uint32(a), uint32(b), uint32(c), uint32(d)}
}

// linear32 is the linear transformation on words of one block.
func linear32(a, b, c, d uint32) (_, _, _, _ uint32) {
	a = bits.RotateLeft32(a, 13)
	c = bits.RotateLeft32(c, 3)
	b ^= a ^ c
	d ^= c ^ a<<3
	b = bits.RotateLeft32(b, 1)
	d = bits.RotateLeft32(d, 7)
	a ^= b ^ d
	c ^= d ^ b<<7
	return bits.RotateLeft32(a, 5), b, bits.RotateLeft32(c, 22), d
}

// wipe is not inlined, so that no compiler can leave it out.
//
//go:noinline
func wipe[T any](v *T) {
	var zero T
	*v = zero
}
