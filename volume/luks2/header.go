// Package luks2 reads and writes the headers and key slots of LUKS2
// containers. Source: LUKS2 On-Disk Format Specification 1.1.4.
package luks2

/*
The container, in KiB, here with headers and data where cryptsetup puts them:

	0         16          32                                        16384
	+---------+-----------+-----------------------------------------+---------
	| primary | secondary | areas of the key slots, and free places | data
	| copy    | copy      | between them                            |
	+---------+-----------+-----------------------------------------+---------

Each copy of the header is a binary part, then the metadata as JSON text, with
NULs from its end to that of the copy:

	0                4096                                            hdr_size
	+----------------+-----------------------------------------------+
	| binary header  | {"keyslots":{"0":{...}},"tokens":{},...} NULs |
	+----------------+-----------------------------------------------+

The binary header (section 2.1), in bytes. Integers are big-endian, texts end in
NULs.

	  0  magic: "LUKS" BA BE,        104  salt, 64
	     secondary "SKUL" BA BE      168  UUID, 40
	  6  version, 2                  208  subsystem, 48
	  8  hdr_size, 8                 256  hdr_offset, 8
	 16  seqid, 8                    264  zeros
	 24  label, 48                   448  csum, 64
	 72  csum_alg, 32                512  zeros

The checksum is that of the whole copy with zeros in its own place. The salt
makes two copies differ in it, and tells an old first sector from a new one.
*/

import (
	"bytes"
	"encoding/binary"
	"strings"

	"serpcrypt/internal/hashes"
	"serpcrypt/volume/luks"
)

const (
	Version    = 2
	HeaderSize = 4096 // bytes of the binary header
	SectorSize = 512  // bytes; the unit of key-slot encryption and of a torn write

	MinSize = 16 << 10 // bytes of one copy; the powers of two between are sizes, too
	MaxSize = 4 << 20

	// Section 3.1 and what cryptsetup has room for.
	MaxSlots    = 32
	MaxTokens   = 32
	MaxSegments = 32
	MaxDigests  = 8

	MaxKeyslotsSize = 128 << 20 // bytes of the keyslots area
	AreaAlignment   = 4096      // bytes

	LabelSize = 48 // bytes, a NUL at the end included; the subsystem's, too
)

// Magic and SecondaryMagic begin the two copies.
var (
	Magic          = [6]byte{'L', 'U', 'K', 'S', 0xBA, 0xBE}
	SecondaryMagic = [6]byte{'S', 'K', 'U', 'L', 0xBA, 0xBE}
)

// Where the fields are, in bytes from the start of the copy.
const (
	offMagic       = 0
	offVersion     = 6
	offSize        = 8
	offSeqID       = 16
	offLabel       = 24
	offChecksumAlg = 72
	offSalt        = 104
	offUUID        = 168
	offSubsystem   = 208
	offOffset      = 256
	offChecksum    = 448
)

// fields is the binary header as it lies on the disk.
type fields struct {
	Magic       [6]byte
	Version     uint16
	Size        uint64
	SeqID       uint64
	Label       [LabelSize]byte
	ChecksumAlg [32]byte
	Salt        [SaltSize]byte
	UUID        [40]byte
	Subsystem   [LabelSize]byte
	Offset      uint64
	_           [184]byte
	Checksum    [checksumSize]byte
	_           [HeaderSize - 512]byte
}

const (
	SaltSize     = 64 // bytes of a copy's salt
	checksumSize = 64 // bytes; shorter digests are followed by zeros
)

// Header is one state of a container's header: what both copies say.
type Header struct {
	Size         int64  // of one copy with its JSON text, in bytes
	SeqID        uint64 // counts the updates
	Label        string
	ChecksumHash string
	UUID         string
	Subsystem    string
	Metadata

	places map[string]int64 // of the members, as they were read: see readJSON
}

// KeyslotsArea returns where the areas of key slots may lie, in bytes from the
// start of the header's store.
func (h *Header) KeyslotsArea() (begin, end int64) {
	begin = 2 * h.Size
	return begin, begin + h.Config.KeyslotsSize
}

// ParseCopy reads the copy that lies at offset in the header's store and that b
// begins with. What the fields say beyond the copy itself is checked by Validate.
// The error is a *luks.FieldError.
func ParseCopy(b []byte, offset int64) (*Header, error) {
	h, fault := parseCopy(b, offset)
	if fault != nil {
		return nil, fault
	}
	return h, nil
}

func parseCopy(b []byte, offset int64) (*Header, *luks.FieldError) {
	f, fault := parseFields(b, offset)
	if fault != nil {
		return nil, fault
	}
	size := int64(f.Size)
	if int64(len(b)) < size {
		return nil, newFault("hdr_size", offset+offSize, "the copy has %d bytes, only %d are there", size, len(b))
	}
	b = b[:size]
	h := &Header{Size: size, SeqID: f.SeqID}
	for _, text := range []struct {
		field  string
		offset int64
		from   []byte
		to     *string
	}{
		{"label", offLabel, f.Label[:], &h.Label},
		{"csum_alg", offChecksumAlg, f.ChecksumAlg[:], &h.ChecksumHash},
		{"uuid", offUUID, f.UUID[:], &h.UUID},
		{"subsystem", offSubsystem, f.Subsystem[:], &h.Subsystem},
	} {
		before, _, ended := bytes.Cut(text.from, []byte{0})
		if !ended {
			return nil, newFault(text.field, offset+text.offset, "no NUL ends the text")
		}
		*text.to = string(before)
	}
	want, fault := checksum(b, h.ChecksumHash)
	if fault != nil {
		fault.Offset += offset
		return nil, fault
	}
	if want != f.Checksum {
		return nil, newFault("csum", offset+offChecksum, "%x..., that of the copy is %x...", f.Checksum[:8], want[:8])
	}
	area := b[HeaderSize:]
	end := bytes.IndexByte(area, 0)
	if end < 0 {
		return nil, newFault("json", offset+HeaderSize, "no NUL ends the text")
	}
	if after := bytes.TrimLeft(area[end:], "\x00"); len(after) > 0 {
		return nil, newFault("json", offset+size-int64(len(after)), "%#x behind the NUL that ends the text", after[0])
	}
	h.places, fault = readJSON(area[:end], offset+HeaderSize, &h.Metadata)
	if fault != nil {
		return nil, fault
	}
	return h, nil
}

// parseFields reads the binary header of the copy at offset and checks what has
// to be known before the rest can be read.
func parseFields(b []byte, offset int64) (*fields, *luks.FieldError) {
	if len(b) < HeaderSize {
		return nil, newFault("magic", offset, "only %d of the %d bytes of a header are there", len(b), HeaderSize)
	}
	f := new(fields)
	if _, err := binary.Decode(b[:HeaderSize], binary.BigEndian, f); err != nil {
		panic("luks2: " + err.Error()) // the sizes are constants
	}
	switch {
	case f.Magic != magicAt(offset):
		return nil, newFault("magic", offset+offMagic, "%q, must be %q", f.Magic, magicAt(offset))
	case offset == 0 && isLUKS1(b):
		return nil, newFault("version", offVersion, "this is a LUKS1 header")
	case f.Version != Version:
		return nil, newFault("version", offset+offVersion, "LUKS version %d, must be %d", f.Version, Version)
	case !isSize(f.Size):
		return nil, newFault("hdr_size", offset+offSize, "%d, must be a power of two from %d to %d", f.Size, MinSize, MaxSize)
	case offset != 0 && f.Size != uint64(offset):
		return nil, newFault("hdr_size", offset+offSize, "%d, but the secondary copy is at byte %d", f.Size, offset)
	case f.Offset != uint64(offset):
		return nil, newFault("hdr_offset", offset+offOffset, "%d, but the copy is at byte %d", f.Offset, offset)
	}
	return f, nil
}

func isLUKS1(b []byte) bool { return string(b[:offSize]) == "LUKS\xBA\xBE\x00\x01" }

func magicAt(offset int64) [6]byte {
	if offset == 0 {
		return Magic
	}
	return SecondaryMagic
}

// isSize reports whether a copy can have this many bytes.
func isSize(n uint64) bool { return n >= MinSize && n <= MaxSize && n&(n-1) == 0 }

// checksum returns that of a copy, whatever stands in its place now.
func checksum(b []byte, name string) (sum [checksumSize]byte, fault *luks.FieldError) {
	newHash, err := hashes.New(name)
	if err != nil {
		return sum, newFault("csum_alg", offChecksumAlg, "unknown hash %s", excerpt(name))
	}
	h := newHash()
	h.Write(b[:offChecksum])
	h.Write(sum[:])
	h.Write(b[offChecksum+checksumSize:])
	copy(sum[:], h.Sum(nil))
	return sum, nil
}

// MarshalCopy returns the Size bytes of the copy for offset, 0 or Size, which
// ParseCopy reads the same header from. The error, a *luks.FieldError, says what has
// no room.
func (h *Header) MarshalCopy(offset int64, salt [SaltSize]byte) ([]byte, error) {
	f := fields{
		Magic: magicAt(offset), Version: Version, Size: uint64(h.Size), SeqID: h.SeqID,
		Salt: salt, Offset: uint64(offset),
	}
	for _, text := range []struct {
		field  string
		offset int64
		from   string
		to     []byte
	}{
		{"label", offLabel, h.Label, f.Label[:]},
		{"csum_alg", offChecksumAlg, h.ChecksumHash, f.ChecksumAlg[:]},
		{"uuid", offUUID, h.UUID, f.UUID[:]},
		{"subsystem", offSubsystem, h.Subsystem, f.Subsystem[:]},
	} {
		if len(text.from) >= len(text.to) || strings.Contains(text.from, "\x00") {
			return nil, newFault(text.field, offset+text.offset, "%s has no room, which is %d bytes and a NUL", excerpt(text.from), len(text.to)-1)
		}
		copy(text.to, text.from)
	}
	b, err := binary.Append(nil, binary.BigEndian, &f)
	if err != nil {
		panic("luks2: " + err.Error())
	}
	json := writeJSON(&h.Metadata)
	if room := h.Size - HeaderSize - 1; int64(len(json)) > room {
		return nil, newFault("json", offset+HeaderSize, "the text takes %d bytes, there is room for %d", len(json), room)
	}
	b = append(b, json...)
	b = append(b, make([]byte, h.Size-int64(len(b)))...)
	sum, fault := checksum(b, h.ChecksumHash)
	if fault != nil {
		return nil, fault
	}
	copy(b[offChecksum:], sum[:])
	return b, nil
}
