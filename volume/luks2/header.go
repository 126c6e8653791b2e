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

// Header is one state of a container's header: what both copies say.
type Header struct {
	Size         int64  // of one copy with its JSON text, in bytes
	SeqID        uint64 // counts the updates
	Label        string
	ChecksumHash string
	UUID         string
	Subsystem    string
	Metadata
}

// KeyslotsArea returns where the areas of key slots may lie, in bytes from the
// start of the header's store.
func (h *Header) KeyslotsArea() (begin, end int64) {
	begin = 2 * h.Size
	return begin, begin + h.Config.KeyslotsSize
}
