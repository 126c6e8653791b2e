//go:generate go run gen_generic.go
//go:generate go run -C _asm .

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

// initial is the hash value that every message starts from (FIPS 180-4, 5.3.1),
// as the bytes of a digest. Hash values are kept so, since the fastest code
// loads and stores them as easily as words, and they need no change in the end.
var initial = [Size]byte{
	0x67, 0x45, 0x23, 0x01,
	0xef, 0xcd, 0xab, 0x89,
	0x98, 0xba, 0xdc, 0xfe,
	0x10, 0x32, 0x54, 0x76,
	0xc3, 0xd2, 0xe1, 0xf0,
}

// digest is a hash under way. The first bytes%BlockSize bytes of tail wait for
// the rest of their block; the others are zero.
type digest struct {
	state  [Size]byte
	kernel Kernel
	bytes  uint64
	tail   [BlockSize]byte
}

// New returns a hash that also implements [hash.Cloner],
// [encoding.BinaryMarshaler], [encoding.BinaryAppender] and
// [encoding.BinaryUnmarshaler].
func New() hash.Hash { return NewKernel(Default()) }

// NewKernel is as New, with kernel k. It panics if CPU or build cannot run that.
func NewKernel(k Kernel) hash.Hash {
	if err := k.check(); err != nil {
		panic(err)
	}
	return &digest{state: initial, kernel: k.Resolve()}
}

var (
	_ hash.Cloner                = (*digest)(nil)
	_ encoding.BinaryMarshaler   = (*digest)(nil)
	_ encoding.BinaryAppender    = (*digest)(nil)
	_ encoding.BinaryUnmarshaler = (*digest)(nil)
)

// Sum returns the SHA-1 digest of p.
func Sum(p []byte) (sum [Size]byte) {
	sumKernel(Default(), &sum, p)
	return sum
}

// sumKernel is not inlined, so that Sum is, and its result not copied twice.
//
//go:noinline
func sumKernel(k Kernel, sum *[Size]byte, p []byte) {
	whole := len(p) &^ (BlockSize - 1)
	if whole == len(p) {
		finish(k, sum, &initial, p, &noBytes, uint64(len(p)))
		return
	}
	var tail [BlockSize]byte
	copy(tail[:], p[whole:])
	finish(k, sum, &initial, p[:whole], &tail, uint64(len(p)))
	wipe(&tail)
}

// noBytes is the tail of messages of whole blocks.
var noBytes [BlockSize]byte

func (d *digest) Size() int { return Size }

func (d *digest) BlockSize() int { return BlockSize }

// Reset also overwrites what was left of the message.
func (d *digest) Reset() { *d = digest{state: initial, kernel: d.kernel} }

// hashValue returns where the hash value is so far. It is not in state before the
// first block: loading at once what Reset has stored would take a while.
func (d *digest) hashValue() *[Size]byte {
	if d.bytes < BlockSize {
		return &initial
	}
	return &d.state
}

// Write never returns an error.
func (d *digest) Write(p []byte) (int, error) {
	n := len(p)
	hashValue := d.hashValue()
	waiting := int(d.bytes % BlockSize)
	d.bytes += uint64(n)
	if waiting > 0 {
		copied := copy(d.tail[waiting:], p)
		if waiting+copied < BlockSize {
			return n, nil
		}
		p = p[copied:]
		whole := len(p) &^ (BlockSize - 1)
		compress(d.kernel, &d.state, hashValue, d.tail[:], p[:whole])
		d.tail = [BlockSize]byte{}
		p = p[whole:]
	} else if whole := len(p) &^ (BlockSize - 1); whole > 0 {
		compress(d.kernel, &d.state, hashValue, p[:whole], nil)
		p = p[whole:]
	}
	copy(d.tail[:], p)
	return n, nil
}

// Sum appends the digest of what was written so far to b. Writing may go on.
func (d *digest) Sum(b []byte) []byte {
	b = append(b, make([]byte, Size)...)
	finish(d.kernel, (*[Size]byte)(b[len(b)-Size:]), d.hashValue(), nil, &d.tail, d.bytes)
	return b
}

func (d *digest) Clone() (hash.Cloner, error) {
	clone := *d
	return &clone, nil
}

// paddingMark is the byte that follows a message.
const paddingMark = 0x80

// tailBlocks returns how many blocks the last n bytes of a message, less than a
// block, make with the padding (FIPS 180-4, 5.1.1).
func tailBlocks(n int) int {
	if n < lengthOffset {
		return 1
	}
	return 2
}

// finishPadded is finish for kernels that do not pad.
func finishPadded(k Kernel, sum, src *[Size]byte, p []byte, tail *[BlockSize]byte, bytes uint64) {
	n := int(bytes % BlockSize)
	var room [2 * BlockSize]byte
	*(*[BlockSize]byte)(room[:]) = *tail
	room[n] = paddingMark
	padded := room[:tailBlocks(n)*BlockSize]
	binary.BigEndian.PutUint64(padded[len(padded)-8:], bytes*8)
	compress(k, sum, src, p, padded)
	if n > 0 {
		wipe(&room)
	}
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
	b = append(b, d.state[:]...)
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
	copy(d.state[:], b[stateOffset:])
	d.bytes = bytes
	d.tail = [BlockSize]byte{}
	copy(d.tail[:], b[tailOffset:])
	return nil
}
