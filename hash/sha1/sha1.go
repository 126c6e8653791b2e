//go:generate go run gen_generic.go

// Package sha1 implements the SHA-1 hash of FIPS 180-4.
//
// SHA-1 no longer resists collisions. LUKS uses it inside PBKDF2 and in the
// anti-forensic splitter, where collisions do not matter; do not use it for
// signatures or to name files.
package sha1

import (
	"encoding"
	"encoding/binary"
	"errors"
	"hash"
)

const (
	Size      = 20 // bytes of a digest
	BlockSize = 64 // bytes that one compression takes
)

// A message may have at most 2^64-1 bits (FIPS 180-4, section 1), which is
// less than this many bytes.
const maxBytes = 1 << 61

// The last 8 bytes of a padded message hold its length in bits.
const lengthOffset = BlockSize - 8

// initial is the hash value that every message starts from (FIPS 180-4, 5.3.1).
var initial = [5]uint32{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0}

// digest is a hash under way. The first bytes%BlockSize bytes of tail wait for
// the rest of their block; the others are zero.
type digest struct {
	state [5]uint32
	bytes uint64
	tail  [BlockSize]byte
}

// New returns a hash that also implements [hash.Cloner],
// [encoding.BinaryMarshaler], [encoding.BinaryAppender] and
// [encoding.BinaryUnmarshaler].
func New() hash.Hash { return &digest{state: initial} }

var (
	_ hash.Cloner                = (*digest)(nil)
	_ encoding.BinaryMarshaler   = (*digest)(nil)
	_ encoding.BinaryAppender    = (*digest)(nil)
	_ encoding.BinaryUnmarshaler = (*digest)(nil)
)

// Sum returns the SHA-1 digest of p.
func Sum(p []byte) (sum [Size]byte) {
	var block [BlockSize]byte
	state := initial
	whole := len(p) &^ (BlockSize - 1)
	if whole > 0 {
		compress(&state, p[:whole])
	}
	copy(block[:], p[whole:])
	finish(&state, &block, uint64(len(p)))
	for i, word := range state {
		binary.BigEndian.PutUint32(sum[4*i:], word)
	}
	return sum
}

func (d *digest) Size() int { return Size }

func (d *digest) BlockSize() int { return BlockSize }

// Reset also overwrites what was left of the message.
func (d *digest) Reset() { *d = digest{state: initial} }

// Write never returns an error.
func (d *digest) Write(p []byte) (int, error) {
	n := len(p)
	waiting := int(d.bytes % BlockSize)
	d.bytes += uint64(n)
	if waiting > 0 {
		copied := copy(d.tail[waiting:], p)
		if waiting+copied < BlockSize {
			return n, nil
		}
		compress(&d.state, d.tail[:])
		d.tail = [BlockSize]byte{}
		p = p[copied:]
	}
	if whole := len(p) &^ (BlockSize - 1); whole > 0 {
		compress(&d.state, p[:whole])
		p = p[whole:]
	}
	copy(d.tail[:], p)
	return n, nil
}

// Sum appends the digest of what was written so far to b. Writing may go on.
func (d *digest) Sum(b []byte) []byte {
	state, block := d.state, d.tail
	finish(&state, &block, d.bytes)
	for _, word := range state {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return b
}

func (d *digest) Clone() (hash.Cloner, error) {
	clone := *d
	return &clone, nil
}

// finish pads and compresses the last, partial block of a message of the given
// length. What of the block is not message must be zero.
func finish(state *[5]uint32, block *[BlockSize]byte, bytes uint64) {
	n := bytes % BlockSize
	block[n] = 0x80
	if n >= lengthOffset {
		compress(state, block[:])
		*block = [BlockSize]byte{}
	}
	binary.BigEndian.PutUint64(block[lengthOffset:], bytes*8)
	compress(state, block[:])
}

// A marshalled hash:
//
//	offset  bytes
//	     0      4  magic
//	     4     20  state, five big-endian words
//	    24      8  bytes hashed so far, big-endian
//	    32   0-63  those of them that still wait for the rest of their block
const (
	magic         = "s1h\x01"
	stateOffset   = 4
	bytesOffset   = 24
	tailOffset    = 32
	maxMarshalled = tailOffset + BlockSize - 1
)

func (d *digest) MarshalBinary() ([]byte, error) {
	return d.AppendBinary(make([]byte, 0, maxMarshalled))
}

func (d *digest) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, magic...)
	for _, word := range d.state {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	b = binary.BigEndian.AppendUint64(b, d.bytes)
	return append(b, d.tail[:d.bytes%BlockSize]...), nil
}

// UnmarshalBinary takes nothing but what MarshalBinary can have made, and
// leaves the hash as it was otherwise.
func (d *digest) UnmarshalBinary(b []byte) error {
	if len(b) < tailOffset {
		return errors.New("sha1: marshalled state is too short")
	}
	if string(b[:stateOffset]) != magic {
		return errors.New("sha1: marshalled state is not of this package")
	}
	bytes := binary.BigEndian.Uint64(b[bytesOffset:])
	if bytes >= maxBytes {
		return errors.New("sha1: marshalled state has more bytes than SHA-1 allows")
	}
	if len(b) != tailOffset+int(bytes%BlockSize) {
		return errors.New("sha1: marshalled state has the wrong length")
	}
	for i := range d.state {
		d.state[i] = binary.BigEndian.Uint32(b[stateOffset+4*i:])
	}
	d.bytes = bytes
	d.tail = [BlockSize]byte{}
	copy(d.tail[:], b[tailOffset:])
	return nil
}
