package luks1

import (
	"bytes"
	"math"

	"serpcrypt/cipher/modes"
	"serpcrypt/internal/hashes"
	"serpcrypt/volume/luks"
)

const (
	fieldPayloadSector = "payload sector"
	// Of a slot.
	fieldActive         = "active"
	fieldIterations     = "iterations"
	fieldMaterialSector = "material sector"
	fieldStripes        = "stripes"
)

// Validate returns the first fault that keeps the container from being used, as
// a *luks.FieldError. The sizes are those of Faults. A slot whose active field is
// neither enabled nor disabled is no such fault: it cannot be opened, and the
// others can.
func (h *Header) Validate(headerSize, dataSize int64) error {
	for _, fault := range h.Faults(headerSize, dataSize) {
		if fault.Field != fieldActive {
			return fault
		}
	}
	return nil
}

// Payload returns where the payload begins in its store, of dataSize bytes, and
// how long it is, in bytes: whole sectors, at least one. That store is another
// than the header's if the header is detached; then the payload may begin
// anywhere. The error is a *luks.FieldError.
func (h *Header) Payload(dataSize int64, detached bool) (offset, size int64, err error) {
	offset = h.PayloadOffset()
	if offset == 0 && !detached {
		return 0, 0, luks.BadField(fieldPayloadSector, luks.NoSlot, offPayloadSector,
			"0: this is a detached header, whose payload is in another file")
	}
	size = (dataSize - offset) / SectorSize * SectorSize
	if size <= 0 {
		return 0, 0, luks.BadField(fieldPayloadSector, luks.NoSlot, offPayloadSector,
			"the payload begins at byte %d, where the container ends (byte %d): there is none", offset, dataSize)
	}
	return offset, size, nil
}

// Faults returns all that is wrong with a header, in the order of the fields.
// The header lies in a store of headerSize bytes, its payload in one of dataSize,
// or luks.UnknownSize. A container may end where its payload should begin, as header
// backups do.
func (h *Header) Faults(headerSize, dataSize int64) []*luks.FieldError {
	v := validator{h: h, headerSize: headerSize, dataSize: dataSize}
	v.checkCipher()
	v.checkHash()
	v.checkPayload()
	v.checkKeyBytes()
	v.checkIterations(luks.NoSlot, offDigestIterations, h.DigestIterations)
	v.checkUUID()
	for slot := range h.Slots {
		v.checkSlot(slot)
	}
	return v.faults
}

// CheckPlaces returns a *luks.FieldError if it is not sure where the key material of
// each slot lies. In all other respects the header may be wrong, and its store, of
// headerSize bytes, may end before the material does. If the size of the key is
// wrong, the material is longer or shorter than it seems; each part of it is needed
// to open the slot.
func (h *Header) CheckPlaces(headerSize int64) error {
	v := &validator{h: h, headerSize: math.MaxInt64, dataSize: luks.UnknownSize, keyBytes: int64(h.KeyBytes)}
	switch {
	case headerSize < headerSpace:
		v.fault("header", luks.NoSlot, 0, "only %d of %d bytes are there", headerSize, headerSpace)
	case h.KeyBytes == 0 || h.KeyBytes > math.MaxInt16:
		v.fault("key bytes", luks.NoSlot, offKeyBytes, "%d is no size of a key", h.KeyBytes)
	}
	for slot := range h.Slots {
		v.checkMaterial(slot)
	}
	if len(v.faults) > 0 {
		return v.faults[0]
	}
	return nil
}

type validator struct {
	h          *Header
	headerSize int64       // of the stores, in bytes
	dataSize   int64       // or luks.UnknownSize
	spec       *modes.Spec // nil if it makes no sense
	keyBytes   int64       // 0 if it makes no sense
	faults     []*luks.FieldError
}

func (v *validator) fault(field string, slot int, offset int64, format string, args ...any) {
	v.faults = append(v.faults, luks.BadField(field, slot, offset, format, args...))
}

func offsetInSlot(slot int, field int64) int64 { return offSlots + int64(slot)*slotSize + field }

// isText reports whether b is printable ASCII with a NUL behind it, and
// records a fault if not.
func (v *validator) isText(field string, offset int64, b []byte) bool {
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		v.fault(field, luks.NoSlot, offset, "no NUL ends the text")
		return false
	}
	for _, c := range b[:end] {
		if c < 0x20 || c > 0x7E {
			v.fault(field, luks.NoSlot, offset, "%q is no text", b[:end])
			return false
		}
	}
	return true
}

func (v *validator) checkCipher() {
	nameIsText := v.isText("cipher name", offCipherName, v.h.CipherName[:])
	modeIsText := v.isText("cipher mode", offCipherMode, v.h.CipherMode[:])
	if !nameIsText || !modeIsText {
		return
	}
	// With a mode that fits any cipher, only the name can be wrong.
	if _, err := modes.ParseSpec(v.h.CipherName.String() + "-ecb"); err != nil {
		v.fault("cipher name", luks.NoSlot, offCipherName, "%s", luks.Reason(err))
		return
	}
	spec, err := modes.ParseSpec(v.h.Spec())
	if err != nil {
		v.fault("cipher mode", luks.NoSlot, offCipherMode, "%s", luks.Reason(err))
		return
	}
	v.spec = &spec
}

func (v *validator) checkHash() {
	if !v.isText("hash", offHash, v.h.Hash[:]) {
		return
	}
	if newHash, err := hashes.New(v.h.Hash.String()); err != nil {
		v.fault("hash", luks.NoSlot, offHash, "unknown hash %q", v.h.Hash)
	} else if size := newHash().Size(); size < DigestSize {
		v.fault("hash", luks.NoSlot, offHash, "%s has %d bytes, %d are needed", v.h.Hash, size, DigestSize)
	}
}

func (v *validator) checkPayload() {
	if begin := v.h.PayloadOffset(); v.dataSize != luks.UnknownSize && begin > v.dataSize {
		v.fault(fieldPayloadSector, luks.NoSlot, offPayloadSector, "the payload begins at byte %d, the container ends at byte %d", begin, v.dataSize)
	}
}

func (v *validator) checkKeyBytes() {
	n := v.h.KeyBytes
	if v.spec == nil {
		return // no size would be right
	}
	if n > math.MaxInt16 {
		v.fault("key bytes", luks.NoSlot, offKeyBytes, "%d is no size of a key", n)
	} else if err := v.spec.CheckKeySize(int(n)); err != nil {
		v.fault("key bytes", luks.NoSlot, offKeyBytes, "%s: %s", v.spec, luks.Reason(err))
	} else {
		v.keyBytes = int64(n)
	}
}

func (v *validator) checkIterations(slot int, offset int64, n uint32) {
	field := fieldIterations
	if slot == luks.NoSlot {
		field = "digest iterations"
	}
	if n == 0 {
		v.fault(field, slot, offset, "0")
	} else if uint64(n) > math.MaxInt {
		v.fault(field, slot, offset, "%d are too many for this machine", n)
	}
}

func (v *validator) checkUUID() {
	if !v.isText("UUID", offUUID, v.h.UUID[:]) {
		return
	}
	if text := v.h.UUID.String(); !luks.IsUUID(text) {
		v.fault("UUID", luks.NoSlot, offUUID, "%q is no UUID", text)
	}
}

func (v *validator) checkSlot(i int) {
	slot := &v.h.Slots[i]
	switch slot.Active {
	case SlotEnabled:
		v.checkIterations(i, offsetInSlot(i, offIterations), slot.Iterations)
	case SlotDisabled:
	default:
		v.fault(fieldActive, i, offsetInSlot(i, offActive), "%#08x means neither enabled (%#08x) nor disabled (%#08x)", slot.Active, SlotEnabled, SlotDisabled)
	}
	v.checkMaterial(i)
	if slot.Stripes != Stripes {
		v.fault(fieldStripes, i, offsetInSlot(i, offStripes), "%d, always %d", slot.Stripes, Stripes)
	}
}

// checkMaterial checks the place of a slot's material, also of a slot that is
// not in use, as the next key added would be written there.
func (v *validator) checkMaterial(i int) {
	bad := func(format string, args ...any) {
		v.fault(fieldMaterialSector, i, offsetInSlot(i, offMaterialSector), format, args...)
	}
	const headerSectors = headerSpace / SectorSize
	begin := int64(v.h.Slots[i].MaterialSector)
	if begin < headerSectors {
		bad("%d lies in the header, which takes %d sectors", begin, headerSectors)
		return
	}
	if v.keyBytes == 0 {
		return // the length is not known
	}
	length := materialSectors(v.keyBytes)
	end := begin + length
	payload := int64(v.h.PayloadSector)
	if payload != 0 && end > payload {
		bad("the material takes the sectors %d to %d, the payload begins at %d", begin, end-1, payload)
	} else if end*SectorSize > v.headerSize {
		bad("the material ends at byte %d, the container at byte %d", end*SectorSize, v.headerSize)
	}
	for other := range i {
		if start := int64(v.h.Slots[other].MaterialSector); begin < start+length && start < end {
			bad("the material takes the sectors %d to %d and overlaps key slot %d (%d to %d)", begin, end-1, other, start, start+length-1)
		}
	}
}
