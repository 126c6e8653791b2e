package luks1

import (
	"fmt"
	"math"
	"strings"

	"serpcrypt/cipher/modes"
	"serpcrypt/internal/hashes"
	"serpcrypt/volume/luks"
)

// Params are what a new header is made from.
type Params struct {
	Spec          string // cipher, as modes.ParseSpec reads it
	KeyBytes      int
	Hash          string
	UUID          string // empty: a new random one
	PayloadOffset int64  // bytes; 0: the first multiple of 1 MiB behind the key slots
	Detached      bool   // the payload lies in another store, by default from its start
}

const (
	// Key slots and payloads begin at multiples of 4 KiB, which are good for
	// disks with such sectors (LUKS_ALIGN_KEYSLOTS).
	slotAlignment = 4096
	// Where the payload is put if nobody wants it elsewhere, as cryptsetup does.
	payloadAlignment = 1 << 20
)

// New returns a header with all slots free and no digest. The error is a
// *modes.SpecError, a *hashes.UnknownError or a *luks.ParamError.
func New(p Params) (*Header, error) {
	spec, err := modes.ParseSpec(p.Spec)
	if err != nil {
		return nil, fmt.Errorf("luks1: %w", err)
	}
	if err := spec.CheckKeySize(p.KeyBytes); err != nil {
		return nil, fmt.Errorf("luks1: %w", err)
	}
	if _, err := hashes.New(p.Hash); err != nil {
		return nil, fmt.Errorf("luks1: %w", err)
	}
	h := &Header{Magic: Magic, Version: Version, KeyBytes: uint32(p.KeyBytes)}
	if err := h.SetUUID(p.UUID); err != nil {
		return nil, err
	}
	name, mode, _ := strings.Cut(spec.String(), "-")
	copy(h.CipherName[:], name)
	copy(h.CipherMode[:], mode)
	copy(h.Hash[:], strings.ToLower(p.Hash))

	for i := range h.Slots {
		h.Slots[i] = Slot{Active: SlotDisabled, MaterialSector: h.standardSector(i), Stripes: Stripes}
	}
	if p.Detached && p.PayloadOffset == 0 {
		return h, nil
	}
	return h, h.placePayload(p.PayloadOffset)
}

// SetUUID sets the UUID, a new random one if text is empty. The error is a
// *luks.ParamError.
func (h *Header) SetUUID(text string) error {
	id, err := luks.NewUUID(text)
	if err != nil {
		return err
	}
	h.UUID = UUID{}
	copy(h.UUID[:], id)
	return nil
}

func (h *Header) placePayload(offset int64) error {
	end := h.EndOfSlots()
	if offset == 0 {
		offset = roundUp(end, payloadAlignment)
	}
	switch {
	case offset < end:
		return luks.BadParam("payload offset", "%d bytes, but the key slots take %d", offset, end)
	case offset%slotAlignment != 0:
		return luks.BadParam("payload offset", "%d bytes are no multiple of %d", offset, slotAlignment)
	case offset/SectorSize > math.MaxUint32:
		return luks.BadParam("payload offset", "%d bytes are too many for the header's field", offset)
	}
	h.PayloadSector = uint32(offset / SectorSize)
	return nil
}

func roundUp(n, multiple int64) int64 { return (n + multiple - 1) / multiple * multiple }
