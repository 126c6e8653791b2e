package volume

import (
	"context"
	"fmt"

	"serpcrypt/internal/secret"
	"serpcrypt/volume/luks1"
)

// Header is what a container's header says, whatever its format.
type Header struct {
	Type             string // "LUKS1"
	Version          int
	UUID             string
	Cipher           string // "serpent"
	Mode             string // "xts-plain64"
	Hash             string
	KeyBytes         int
	PayloadOffset    int64 // bytes; 0: the payload is not in this file
	Digest           []byte
	DigestSalt       []byte
	DigestIterations int
	Slots            []Slot
}

// Slot is a key slot.
type Slot struct {
	State          SlotState
	Iterations     int
	Salt           []byte
	MaterialOffset int64 // bytes
	Stripes        int
}

// SlotState is what can be done with a key slot.
type SlotState string

const (
	SlotEnabled  SlotState = "enabled"
	SlotDisabled SlotState = "disabled"
	SlotInvalid  SlotState = "invalid" // damaged: neither can it be opened nor is it known to be free
)

// ReadHeader reads the header of a container. The error is a *FormatError, or
// that of the store. If only a field is wrong, the header is returned as well,
// so that it can be shown.
func ReadHeader(s Store) (*Header, error) {
	c, err := readContainer(s)
	if err != nil {
		return nil, err
	}
	return c.header(), c.validate()
}

// container is what the rest of the package needs to know of a format.
type container interface {
	header() *Header
	// faults returns all that is wrong with the header, validate the first that
	// keeps the container from being used.
	faults() []*FormatError
	validate() error
	// usableSlots returns the key slots in use, the cheapest first.
	usableSlots() []int
	// openSlots returns the first of the slots that opens and the volume key, or
	// ErrPassphrase.
	openSlots(ctx context.Context, slots []int, passphrase []byte) (slot int, key *secret.Buffer, err error)
	// checkKey returns ErrVolumeKey for a key that is not the container's.
	checkKey(ctx context.Context, key []byte) error
	// extents returns where the volume's sectors are, in order and without gap.
	extents() ([]extent, error)
}

// readContainer finds out which format the container has.
func readContainer(s Store) (container, error) {
	size, err := s.Size()
	if err != nil {
		return nil, err
	}
	head := make([]byte, min(size, luks1.HeaderSize))
	if err := readFull(s, head, 0); err != nil {
		return nil, fmt.Errorf("volume: header: %w", err)
	}
	return parseLUKS1(s, size, head)
}

// openContainer is readContainer for one that has to be usable.
func openContainer(s Store) (container, error) {
	c, err := readContainer(s)
	if err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	_, err = c.extents()
	return c, err
}
