package modes

import (
	"encoding/binary"
	"math/bits"

	"serpcrypt/cipher/serpent"
)

// LRW (IEEE P1619 draft of 2004) adds to each block, before and after the
// cipher, the product of the block's 128-bit number and the tweak key in
// GF(2^128) modulo x^128 + x^7 + x^2 + x + 1. Numbers and elements are read
// as big-endian; the lowest bit is the coefficient of 1.

const (
	lrwTweakKeySize = 16

	// lrwPass is how many bytes are encrypted at once: twice what the widest
	// kernel takes. More would save 2 %, and cost a lone sector more than that.
	lrwPass = 192 * serpent.BlockSize

	// lrwRow is the size of the products of all digits.
	lrwRow = 16 * serpent.BlockSize
)

// lrwScratch is secret.
type lrwScratch struct {
	walk   lrwWalk
	tweaks [lrwPass + lrwRow]byte // with room for whole rows
}

// wipe is not inlined, so that no compiler can leave it out.
//
//go:noinline
func (s *lrwScratch) wipe() { *s = lrwScratch{} }

// cryptLRW works on sectors. Each 16 bytes of ivs are the number of the first
// block of one.
func (s *Sectors) cryptLRW(dst, src, ivs []byte, encrypt bool) {
	var scratch lrwScratch
	walk := &scratch.walk
	walk.table = &s.keys.lrw
	for inSector := 0; len(src) > 0; {
		n := min(len(src), lrwPass)
		for at := 0; at < n; {
			if inSector == 0 {
				walk.moveTo(loadNumber(ivs))
				ivs = ivs[ivSize:]
			}
			part := min(n-at, s.sectorSize-inSector)
			walk.fill(scratch.tweaks[at:], part)
			at += part
			inSector = (inSector + part) % s.sectorSize
		}
		tweaks := scratch.tweaks[:n]
		switch {
		case s.blocks.data != nil:
			s.blocks.crypt(modeLRW, dst[:n], src[:n], tweaks, serpent.BlockSize, encrypt)
		case encrypt:
			s.keys.data.EncryptXEX(dst[:n], src[:n], tweaks)
		default:
			s.keys.data.DecryptXEX(dst[:n], src[:n], tweaks)
		}
		dst, src = dst[n:], src[n:]
	}
	scratch.wipe()
}

// number is one of 128 bits.
type number struct{ high, low uint64 }

func loadNumber(b []byte) number {
	return number{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func (n number) plus(m uint64) number {
	low, carry := bits.Add64(n.low, m, 0)
	return number{n.high + carry, low}
}

// element is one of the field, in two words that XOR with a block's.
type element struct{ first, last uint64 }

func loadElement(b []byte) element {
	return element{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

func (e element) store(b []byte) {
	binary.LittleEndian.PutUint64(b, e.first)
	binary.LittleEndian.PutUint64(b[8:], e.last)
}

func (e element) plus(f element) element {
	return element{e.first ^ f.first, e.last ^ f.last}
}

func (e element) timesX() element {
	high, low := bits.ReverseBytes64(e.first), bits.ReverseBytes64(e.last)
	carry := -(high >> 63)
	return element{bits.ReverseBytes64(high<<1 | low>>63), bits.ReverseBytes64(low<<1 ^ carry&0x87)}
}

// lrwTable holds in row i, at d, the tweak key times d shifted left by 4i bits,
// so that a product is the sum of one entry for each hexadecimal digit of the
// block number. Addresses depend on block numbers only, and LRW does not need
// these to be secret.
type lrwTable [32 * lrwRow]byte

// from returns the table from an entry on, for the last digit of d.
func (t *lrwTable) from(i int, d uint64) []byte {
	return t[i%32*lrwRow+int(d%16)*serpent.BlockSize:]
}

func (t *lrwTable) init(tweakKey []byte) {
	power := loadElement(tweakKey)
	for i := range 32 {
		for bit := uint64(1); bit < 16; bit *= 2 {
			for d := range bit {
				loadElement(t.from(i, d)).plus(power).store(t.from(i, bit+d))
			}
			power = power.timesX()
		}
	}
}

// times returns the tweak key times n.
func (t *lrwTable) times(n number) (product element) {
	for half, digits := range [2]uint64{n.low, n.high} {
		if digits == 0 {
			continue
		}
		for i := range 16 {
			product = product.plus(loadElement(t.from(16*half+i, digits)))
			digits >>= 4
		}
	}
	return product
}

// lrwWalk goes from block to block.
type lrwWalk struct {
	table   *lrwTable
	n       number  // of the next block, without its last two digits
	product element // n times the tweak key
	digits  uint64  // the last two digits, or one past them
}

// moveTo makes n the number of the next block. The product of a sum is the sum
// of the products, and from here to there few digits change.
func (w *lrwWalk) moveTo(n number) {
	w.digits = n.low & 0xff
	n.low -= w.digits
	w.product = w.product.plus(w.table.times(number{w.n.high ^ n.high, w.n.low ^ n.low}))
	w.n = n
}

// fill writes the tweaks of the next blocks, whose numbers wrap around at 2^128,
// to n bytes of dst, and anything to as much as a row behind.
func (w *lrwWalk) fill(dst []byte, n int) {
	for at := 0; at < n; {
		if w.digits > 0xff {
			w.moveTo(w.n.plus(w.digits))
		}
		// What is not of this row comes out wrong, and is written anew.
		product := w.product.plus(loadElement(w.table.from(1, w.digits>>4)))
		addToRow((*[lrwRow]byte)(dst[at:]), (*[lrwRow]byte)(w.table.from(0, w.digits)), product)
		right := min(16-int(w.digits%16), (n-at)/serpent.BlockSize)
		w.digits += uint64(right)
		at += right * serpent.BlockSize
	}
}

// addToRow sets dst to the elements of src, each plus e. It is spelled out as
// the compiler makes the most of it.
func addToRow(dst, src *[lrwRow]byte, e element) {
	for i := 0; i < lrwRow; i += 2 * serpent.BlockSize {
		binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(src[i:])^e.first)
		binary.LittleEndian.PutUint64(dst[i+8:], binary.LittleEndian.Uint64(src[i+8:])^e.last)
		binary.LittleEndian.PutUint64(dst[i+16:], binary.LittleEndian.Uint64(src[i+16:])^e.first)
		binary.LittleEndian.PutUint64(dst[i+24:], binary.LittleEndian.Uint64(src[i+24:])^e.last)
	}
}
