// Package luks1 reads and writes the headers and key slots of LUKS1
// containers. Source: LUKS1 On-Disk Format Specification 1.2.3.
package luks1

/*
The container, in sectors of 512 bytes, here with a key of 512 bits:

	0        8               512                       3536          4036    4096
	+--------+---------------+---------------+---- ... +-------------+-------+---------
	| header | material of   | material of   |         | material of | zeros | payload
	|        | key slot 0    | key slot 1    |         | key slot 7  |       |
	+--------+---------------+---------------+---- ... +-------------+-------+---------

The header (table 1), in bytes. Integers are big-endian, texts end in NULs.

	  0  magic "LUKS" BA BE          104  payload sector, 4
	  6  version, 2                  108  key bytes, 4
	  8  cipher name, 32             112  digest of the volume key, 20
	 40  cipher mode, 32             132  digest salt, 32
	 72  hash, 32                    164  digest iterations, 4
	                                 168  UUID, 40
	208  key slots, 8 times 48:
	     + 0  active, 4              +40  material sector, 4
	     + 4  iterations, 4          +44  stripes, 4
	     + 8  salt, 32
*/

import (
	"bytes"
	"encoding/binary"

	"serpcrypt/volume/keyslot"
	"serpcrypt/volume/luks"
)

const (
	Version    = 1
	HeaderSize = 592 // bytes
	SectorSize = 512 // bytes; the unit of places and of key-slot encryption
	NumSlots   = 8
	Stripes    = keyslot.Stripes
	DigestSize = 20 // bytes, whatever the hash
	SaltSize   = 32 // bytes

	// Active of a slot (table 2).
	SlotEnabled  = 0x00AC71F3
	SlotDisabled = 0x0000DEAD
)

// Magic begins every header.
var Magic = [6]byte{'L', 'U', 'K', 'S', 0xBA, 0xBE}

// Where the fields are, in bytes from the header's start or the slot's.
const (
	offMagic            = 0
	offVersion          = 6
	offCipherName       = 8
	offCipherMode       = 40
	offHash             = 72
	offPayloadSector    = 104
	offKeyBytes         = 108
	offDigest           = 112
	offDigestSalt       = 132
	offDigestIterations = 164
	offUUID             = 168
	offSlots            = 208

	slotSize          = 48
	offActive         = 0
	offIterations     = 4
	offSalt           = 8
	offMaterialSector = 40
	offStripes        = 44
)

// Header is what the header says, field by field as it lies on the disk.
type Header struct {
	Magic            [6]byte
	Version          uint16
	CipherName       Name
	CipherMode       Name
	Hash             Name
	PayloadSector    uint32 // 0 if the header is detached from the payload
	KeyBytes         uint32
	Digest           [DigestSize]byte
	DigestSalt       [SaltSize]byte
	DigestIterations uint32
	UUID             UUID
	Slots            [NumSlots]Slot
}

// Slot is a key slot. A disabled one has a place for its material, too.
type Slot struct {
	Active         uint32
	Iterations     uint32
	Salt           [SaltSize]byte
	MaterialSector uint32
	Stripes        uint32
}

// Name and UUID are texts with a NUL behind them.
type (
	Name [32]byte
	UUID [40]byte
)

func (n Name) String() string { return untilNUL(n[:]) }
func (u UUID) String() string { return untilNUL(u[:]) }

func untilNUL(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}

// Parse reads a header from the first HeaderSize bytes of b. It fails only if
// they are too few or no LUKS1 header at all: what the fields say is checked
// by Validate. The error is a *luks.FieldError.
func Parse(b []byte) (*Header, error) {
	if len(b) < HeaderSize {
		return nil, luks.BadField("header", luks.NoSlot, 0, "only %d of %d bytes are there, too few for a LUKS container", len(b), HeaderSize)
	}
	h := new(Header)
	if _, err := binary.Decode(b[:HeaderSize], binary.BigEndian, h); err != nil {
		panic("luks1: " + err.Error()) // the sizes are constants
	}
	if h.Magic != Magic {
		return nil, luks.BadField("magic", luks.NoSlot, offMagic, "this is no LUKS container")
	}
	if h.Version != Version {
		return nil, luks.BadField("version", luks.NoSlot, offVersion, "LUKS version %d, only %d is known", h.Version, Version)
	}
	return h, nil
}

// Marshal returns the HeaderSize bytes that Parse reads the same header from.
func (h *Header) Marshal() []byte {
	b, err := binary.Append(nil, binary.BigEndian, h)
	if err != nil {
		panic("luks1: " + err.Error())
	}
	return b
}

// Spec returns the cipher as the modes package and dm-crypt name it:
// "serpent-xts-plain64".
func (h *Header) Spec() string { return h.CipherName.String() + "-" + h.CipherMode.String() }

// PayloadOffset returns where the payload begins, in bytes.
func (h *Header) PayloadOffset() int64 { return int64(h.PayloadSector) * SectorSize }

// MaterialOffset returns where the slot's key material begins, in bytes.
func (s *Slot) MaterialOffset() int64 { return int64(s.MaterialSector) * SectorSize }

// MaterialSize returns how many bytes the material of a key slot takes.
func (h *Header) MaterialSize() int64 { return keyslot.MaterialSize(int64(h.KeyBytes)) }

// materialSectors returns how many sectors the material of a key takes.
func materialSectors(keyBytes int64) int64 { return keyslot.MaterialSize(keyBytes) / SectorSize }

// Space returns how many bytes of its store the header takes with its key
// slots, as cryptsetup counts them: to the next multiple of 4 KiB, but not into
// the payload.
func (h *Header) Space() int64 {
	space := roundUp(h.EndOfSlots(), slotAlignment)
	if payload := h.PayloadOffset(); payload != 0 {
		space = min(space, payload)
	}
	return space
}

// EndOfSlots returns where the last material ends, in bytes. All before may be
// overwritten by key slots.
func (h *Header) EndOfSlots() int64 {
	var end int64
	for i := range h.Slots {
		end = max(end, int64(h.Slots[i].MaterialSector)+materialSectors(int64(h.KeyBytes)))
	}
	return end * SectorSize
}
