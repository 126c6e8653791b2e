package af

import (
	"bytes"
	"encoding/binary"
)

// Spot is a run of sectors that something other than chance has written.
type Spot struct {
	Offset, Size int64  // bytes from the area's begin, whole sectors but at its end
	What         string // "zeros", "text", "an ext file system" ...
}

const spotSize = 512

// In 512 random bytes there are 511 pairs of equal bytes on average (a pair is
// any two of the bytes, wherever they are), and the standard deviation is 23.
//
// Fewer than fewestPairs or more than mostPairs are in less than 7e-13 of all
// random sectors, and a partition table in less than 6e-14, so that of random
// areas of 256 KiB, which have 512 sectors, less than 4e-10 are taken for
// something else. The first figure adds up two Chernoff bounds, from the
// moment-generating function of the number of pairs in sectors where no byte
// value is there 24 times, and the odds of such a value. TestFalseAlarms computes
// them.
const (
	fewestPairs = 375
	mostPairs   = 760
)

// NotRandom returns where an anti-forensic area, as it lies encrypted on disk,
// cannot have come out of a cipher: zeros, text, a partition table, a file
// system's superblock. It looks at each sector of 512 bytes on its own, counts
// equal bytes, and looks for partition tables. Neighbours of one kind are one
// spot. For a random area of up to 256 KiB, the odds that it returns any are
// below 1e-9.
//
// Nothing tells what another cipher or a compressor has written. A shorter
// sector at the end is looked at with as much before it as makes 512 bytes, if
// that is random; and an area that is shorter is not.
func NotRandom(area []byte) (spots []Spot) {
	at := 0
	found := func(end int) {
		spot := Spot{int64(at), int64(end - at), name(area[at:end])}
		if n := len(spots) - 1; n >= 0 && spots[n].What == spot.What && spots[n].end() == spot.Offset {
			spots[n].Size += spot.Size
		} else {
			spots = append(spots, spot)
		}
	}
	for ; at+spotSize <= len(area); at += spotSize {
		if !isRandom(area[at:][:spotSize]) {
			found(at + spotSize)
		}
	}
	isKnown := len(spots) > 0 && spots[len(spots)-1].end() == int64(at)
	if at > 0 && at < len(area) && !isKnown && !isRandom(area[len(area)-spotSize:]) {
		found(len(area))
	}
	return spots
}

func (s Spot) end() int64 { return s.Offset + s.Size }

func isRandom(sector []byte) bool {
	pairs := equalPairs(sector)
	return pairs >= fewestPairs && pairs <= mostPairs && !isPartitionTable(sector)
}

func equalPairs(b []byte) (pairs int) {
	var counts [256]int
	for _, c := range b {
		pairs += counts[c]
		counts[c]++
	}
	return pairs
}

// isPartitionTable knows a master boot record with partitions by its signature
// and the flags of its four entries, of which 6 bytes have one or two values: of
// random sectors 2^-44 are one.
func isPartitionTable(sector []byte) bool {
	const entries, entrySize, signature = 446, 16, 510
	for at := entries; at < signature; at += entrySize {
		if sector[at]&0x7f != 0 {
			return false
		}
	}
	isEmpty := len(bytes.Trim(sector[entries:signature], "\x00")) == 0
	return !isEmpty && hasBootSignature(sector)
}

func hasBootSignature(sector []byte) bool {
	return binary.BigEndian.Uint16(sector[spotSize-2:]) == 0x55aa
}

// signatures name what begins in a sector. They are for sectors that are known
// not to be random, and so may be short. The first that is found counts.
var signatures = []struct {
	offset int
	magic  string
	what   string
}{
	{0, "LUKS\xba\xbe", "a LUKS header"},
	{0, "SKUL\xba\xbe", "a LUKS header"},
	{0, "EFI PART", "a GUID partition table"},
	{0, "LABELONE", "an LVM label"},
	{0, "\xfc\x4e\x2b\xa9", "a RAID superblock"},
	{0, "XFSB", "an XFS file system"},
	{0x40, "_BHRfS_M", "a Btrfs file system"},
	{0, "\x10\x20\xf5\xf2", "an F2FS file system"},
	{56, "\x53\xef", "an ext file system"},
	{1, "CD001", "an ISO 9660 file system"},
	{3, "NTFS    ", "an NTFS file system"},
	{3, "EXFAT   ", "an exFAT file system"},
	{502, "SWAPSPACE2", "swap space"},
}

// name says what a sector that is not random holds, or the shorter one at the
// end.
func name(sector []byte) string {
	if bytes.Count(sector, sector[:1]) == len(sector) {
		switch sector[0] {
		case 0:
			return "zeros"
		case 0xff:
			return "0xFF bytes"
		}
		return "one byte repeated"
	}
	for _, s := range signatures {
		if s.offset < len(sector) && bytes.HasPrefix(sector[s.offset:], []byte(s.magic)) {
			return s.what
		}
	}
	isWhole := len(sector) == spotSize
	switch {
	case isWhole && isPartitionTable(sector):
		return "a partition table"
	case isWhole && hasBootSignature(sector):
		return "a boot sector"
	case isText(sector):
		return "text"
	}
	return "a pattern"
}

// isText reports whether b is ASCII or UTF-8 as far as control characters tell,
// perhaps with zeros behind.
func isText(b []byte) bool {
	b = bytes.TrimRight(b, "\x00")
	for _, c := range b {
		if c < ' ' && !bytes.ContainsRune([]byte("\t\n\v\f\r\x1b"), rune(c)) || c == 0x7f {
			return false
		}
	}
	return len(b) > 0
}
