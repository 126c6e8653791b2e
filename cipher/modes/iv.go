package modes

import (
	"encoding/binary"

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
// numbered first, and so on. Numbers wrap around at 2^64.
func (s *Sectors) makeIVs(ivs []byte, first uint64) {
	for i, n := 0, first; i < len(ivs); i, n = i+ivSize, n+s.unitsPerSector {
		low, high := ivs[i:i+8], ivs[i+8:i+ivSize]
		clear(ivs[i : i+ivSize])
		switch s.iv {
		case ivPlain:
			binary.LittleEndian.PutUint32(low, uint32(n))
		case ivPlain64, ivESSIV:
			binary.LittleEndian.PutUint64(low, n)
		case ivPlain64BE:
			binary.BigEndian.PutUint64(high, n)
		case ivBenbi:
			binary.BigEndian.PutUint64(high, n<<s.benbiShift+1)
		}
	}
	if s.iv == ivESSIV {
		s.keys.essiv.EncryptBlocks(ivs, ivs)
	}
}
