package whirlpool

import (
	"encoding/binary"
	"math/bits"
)

const rounds = 10

// state is a matrix of 8 by 8 bytes. Each word is a row, its first byte the
// highest.
type state [8]uint64

func load(b *[BlockSize]byte) (s state) {
	for i := range s {
		s[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return s
}

func (s *state) append(b []byte) []byte {
	for _, row := range s {
		b = binary.BigEndian.AppendUint64(b, row)
	}
	return b
}

// compress takes one block in: the block cipher W under the chaining value as
// its key, in the way of Miyaguchi and Preneel.
func (s *state) compress(block *[BlockSize]byte) {
	key, message := *s, load(block)
	cipher := message
	cipher.add(&key)
	for r := range rounds {
		key = key.mix()
		key[0] ^= roundConstants[r]
		cipher = cipher.mix()
		cipher.add(&key)
	}
	s.add(&cipher)
	s.add(&message)
}

func (s *state) add(t *state) {
	for i := range s {
		s[i] ^= t[i]
	}
}

// mix is a round without its key: each byte through the S-box, column j down by
// j rows, each row times the circulant matrix. Spelled out, it takes a third
// of the time that a loop does.
func (s *state) mix() (mixed state) {
	for i := range mixed {
		mixed[i] = rows[s[i]>>56] ^
			bits.RotateLeft64(rows[byte(s[(i-1)&7]>>48)], -8) ^
			bits.RotateLeft64(rows[byte(s[(i-2)&7]>>40)], -16) ^
			bits.RotateLeft64(rows[byte(s[(i-3)&7]>>32)], -24) ^
			bits.RotateLeft64(rows[byte(s[(i-4)&7]>>24)], -32) ^
			bits.RotateLeft64(rows[byte(s[(i-5)&7]>>16)], -40) ^
			bits.RotateLeft64(rows[byte(s[(i-6)&7]>>8)], -48) ^
			bits.RotateLeft64(rows[byte(s[(i-7)&7])], -56)
	}
	return mixed
}
