package volume

import (
	"context"

	"serpcrypt/volume/luks1"
	"serpcrypt/volume/luks2"
)

// The formats.
const (
	TypeLUKS1 = "LUKS1"
	TypeLUKS2 = "LUKS2"
)

// Header is what a container's header says, whatever its format.
type Header struct {
	Type             string // TypeLUKS1 or TypeLUKS2
	Version          int
	UUID             string
	Label, Subsystem string // LUKS2 only
	Cipher           string // "serpent"
	Mode             string // "xts-plain64"
	Hash             string // of the volume key's digest; with LUKS1, of all there is
	KeyBytes         int    // 0 if there is no key slot that tells it
	SectorSize       int    // of the payload, in bytes
	PayloadOffset    int64  // bytes; 0: the header is detached
	PayloadSize      int64  // bytes; 0: all up to the end of its store
	Digest           []byte
	DigestSalt       []byte
	DigestIterations int
	Slots            []Slot // by number

	// Warnings are about parts of the header that the container does without: a
	// damaged copy.
	Warnings []*FormatError

	// Every field, in the format that Type names. The other is nil.
	LUKS1 *luks1.Header
	LUKS2 *luks2.Header
}

// Slot is a key slot.
type Slot struct {
	State    SlotState
	Priority SlotPriority

	KDF        string // "pbkdf2", "argon2i" or "argon2id"
	Hash       string // of PBKDF2
	Iterations int    // of PBKDF2
	Argon2     Argon2Cost
	Salt       []byte

	KeyBytes       int    // of the key in it
	Cipher         string // of the material, "serpent-xts-plain64"
	MaterialOffset int64  // bytes
	MaterialSize   int64  // bytes
	Stripes        int
	StripesHash    string // of the anti-forensic splitter
}

// Argon2Cost is what a derivation by Argon2 takes.
type Argon2Cost struct {
	Time      int // passes
	MemoryKiB int
	Lanes     int
}

// SlotPriority says when a key slot is tried, if none is asked for.
type SlotPriority int

// The priorities of LUKS2, which are those of all slots of LUKS1 too.
const (
	PriorityIgnore SlotPriority = iota // only if it is asked for
	PriorityNormal
	PriorityPrefer // before those of normal priority
)

// SlotState is what can be done with a key slot.
type SlotState string

const (
	SlotEnabled  SlotState = "enabled"
	SlotDisabled SlotState = "disabled"
	SlotUnbound  SlotState = "unbound" // LUKS2: in use for another key than the volume's
	SlotInvalid  SlotState = "invalid" // damaged: neither can it be opened nor is it known to be free
)

// PayloadIn returns how many bytes of payload there is room for in a store of so
// many bytes: whole sectors.
func (h *Header) PayloadIn(storeSize int64) int64 {
	sectorSize := int64(h.SectorSize)
	return (storeSize - h.PayloadOffset) / sectorSize * sectorSize
}

// ReadHeader reads the header of a container. The error is a *FormatError, or
// that of the store. If only a field is wrong, the header is returned as well,
// so that it can be shown.
func ReadHeader(at Stores) (*Header, error) {
	c, err := readContainer(context.Background(), at)
	if err != nil {
		return nil, err
	}
	return c.header(), c.validate()
}
