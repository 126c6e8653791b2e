package modes

import (
	"encoding/binary"
	"math"

	"serpcrypt/cipher/serpent"
)

const (
	ivSize = serpent.BlockSize

	// unitSize is what sector numbers count, whatever a sector's size.
	unitSize = 512
)

// An ivKind is a way from a sector's number to its IV, named as in dm-crypt
// (drivers/md/dm-crypt.c).
type ivKind uint8

const (
	ivNone ivKind = iota
	ivNull
	ivPlain
	ivPlain64
	ivPlain64BE
	ivBenbi
	ivESSIV
)

var ivNames = []string{
	ivNone:      "",
	ivNull:      "null",
	ivPlain:     "plain",
	ivPlain64:   "plain64",
	ivPlain64BE: "plain64be",
	ivBenbi:     "benbi",
	ivESSIV:     "essiv",
}

// benbiShift turns a sector number into a count of cipher blocks. In dm-crypt
// a "block" is the mode's unit, and that is one byte for ctr.
func benbiShift(m mode) uint {
	if m == modeCTR {
		return 9
	}
	return 5
}

// makeIVs writes an IV for each 16 bytes of ivs: the first for the sector
// numbered first, and so on. Numbers wrap around at 2^64. room has a block, and
// is afterwards as it was.
func (s *Sectors) makeIVs(ivs []byte, first uint64, room []byte) {
	step := uint64(s.sectorSize / unitSize)
	switch s.iv {
	case ivNull:
		clear(ivs)
	case ivPlain:
		littleEndianIVs(ivs, first, step, math.MaxUint32)
	case ivPlain64:
		littleEndianIVs(ivs, first, step, math.MaxUint64)
	case ivPlain64BE:
		bigEndianIVs(ivs, first, step)
	case ivBenbi:
		shift := benbiShift(s.mode)
		bigEndianIVs(ivs, first<<shift+1, step<<shift)
	case ivESSIV:
		littleEndianIVs(ivs, first, step, math.MaxUint64)
		if s.blocks.essiv != nil {
			encryptIVs(s.blocks.essiv, ivs, room)
			clearBlockStack()
		} else {
			s.keys.essiv.EncryptBlocks(ivs, ivs)
		}
	}
}

// littleEndianIVs writes n and then each time step more, masked, into the first
// halves of the IVs.
func littleEndianIVs(ivs []byte, n, step, mask uint64) {
	for ; len(ivs) >= ivSize; ivs = ivs[ivSize:] {
		binary.LittleEndian.PutUint64(ivs, n&mask)
		binary.LittleEndian.PutUint64(ivs[8:], 0)
		n += step
	}
}

// bigEndianIVs writes n and then each time step more into the last halves of
// the IVs.
func bigEndianIVs(ivs []byte, n, step uint64) {
	for ; len(ivs) >= ivSize; ivs = ivs[ivSize:] {
		binary.BigEndian.PutUint64(ivs, 0)
		binary.BigEndian.PutUint64(ivs[8:], n)
		n += step
	}
}
