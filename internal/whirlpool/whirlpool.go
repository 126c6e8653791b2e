// Package whirlpool is the hash function Whirlpool (ISO/IEC 10118-3:2004,
// dedicated hash-function 7; P. Barreto and V. Rijmen, "The Whirlpool Hashing
// Function", revision of 2003).
//
// It is there for old containers and no choice for a new one: it looks up
// bytes of what it hashes in a table, so that its time depends on them where
// others share the processor's cache.
//
// libgcrypt before 1.6.0 computed another function where the input came in
// pieces that did not fill a block. cryptsetup calls that one
// whirlpool_gcryptbug; this package does not have it.
package whirlpool

import (
	"encoding/binary"
	"errors"
	"hash"
)

// Sizes in bytes.
const (
	Size      = 64
	BlockSize = 64
)

// lengthSize is the size of the message's length at its end.
const lengthSize = 32

// digest keeps the chaining value and what does not fill a block yet. n counts
// all bytes of input: more than 2^64 nobody has.
type digest struct {
	state  state
	buffer [BlockSize]byte
	n      uint64
}

// New returns a hash that also implements encoding.BinaryMarshaler and
// encoding.BinaryUnmarshaler, which save and restore its state.
func New() hash.Hash { return new(digest) }

func (d *digest) Size() int      { return Size }
func (d *digest) BlockSize() int { return BlockSize }

// Reset leaves the buffer, which is overwritten before it is read.
func (d *digest) Reset() { d.state, d.n = state{}, 0 }

func (d *digest) Write(p []byte) (int, error) {
	written := len(p)
	if buffered := d.n % BlockSize; buffered > 0 {
		n := copy(d.buffer[buffered:], p)
		d.n += uint64(n)
		if p = p[n:]; d.n%BlockSize > 0 {
			return written, nil
		}
		d.state.compress(&d.buffer)
	}
	d.n += uint64(len(p))
	for ; len(p) >= BlockSize; p = p[BlockSize:] {
		d.state.compress((*[BlockSize]byte)(p))
	}
	copy(d.buffer[:], p)
	return written, nil
}

// Sum appends the digest of the input so far to b. A copy of d takes the
// padding: a one bit, zeros, and the length in 256 bits.
func (d *digest) Sum(b []byte) []byte {
	end := *d
	var padding [BlockSize + lengthSize]byte
	padding[0] = 0x80
	n := BlockSize - int(d.n%BlockSize)
	if n <= lengthSize {
		n += BlockSize
	}
	binary.BigEndian.PutUint64(padding[n-16:], d.n>>61)
	binary.BigEndian.PutUint64(padding[n-8:], d.n<<3)
	end.Write(padding[:n])
	return end.state.append(b)
}

// A saved state is the magic, the chaining value, the buffer and the count.
const (
	magic     = "whp\x01"
	savedSize = len(magic) + Size + BlockSize + 8
)

func (d *digest) MarshalBinary() ([]byte, error) {
	b := d.state.append(append(make([]byte, 0, savedSize), magic...))
	b = append(b, d.buffer[:d.n%BlockSize]...)
	b = append(b, make([]byte, BlockSize-d.n%BlockSize)...)
	return binary.BigEndian.AppendUint64(b, d.n), nil
}

func (d *digest) UnmarshalBinary(b []byte) error {
	if len(b) != savedSize || string(b[:len(magic)]) != magic {
		return errors.New("whirlpool: no saved state")
	}
	b = b[len(magic):]
	d.state = load((*[BlockSize]byte)(b))
	copy(d.buffer[:], b[Size:])
	d.n = binary.BigEndian.Uint64(b[Size+BlockSize:])
	return nil
}
