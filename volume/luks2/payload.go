package luks2

import (
	"serpcrypt/cipher/modes"
	"serpcrypt/volume/luks"
)

// Payload returns where the data begin in their store, of dataSize bytes, and how
// long they are, in bytes: whole sectors, at least one. That store is another than
// the header's if the header is detached. The error is a *luks.FieldError.
func (h *Header) Payload(dataSize int64, detached bool) (offset, size int64, err error) {
	s := h.Segments[0]
	switch {
	case s == nil || !modes.IsSectorSize(s.SectorSize):
		return 0, 0, h.faultAt("segments.0", "there is no segment 0 that could be used")
	case s.Offset == 0 && !detached:
		return 0, 0, h.faultAt("segments.0.offset", "0: this is a detached header, whose data are in another file")
	case dataSize-s.Offset < int64(s.SectorSize):
		return 0, 0, h.faultAt("segments.0.offset", "the data begin at byte %d, their store ends at byte %d: there is no sector", s.Offset, dataSize)
	}
	if fault := h.endFault(s, dataSize); fault != nil {
		return 0, 0, fault
	}
	size = s.Size
	if size == DynamicSize {
		size = (dataSize - s.Offset) / SectorSize * SectorSize
	}
	return s.Offset, size, nil
}

// endFault says what is wrong with where the data end.
func (h *Header) endFault(s *Segment, dataSize int64) *luks.FieldError {
	const field = "segments.0.size"
	if s.Size != DynamicSize {
		if s.Size > dataSize-s.Offset {
			return h.faultAt(field, "the data take %d bytes from byte %d, their store ends at byte %d", s.Size, s.Offset, dataSize)
		}
		return nil
	}
	// What is left of a sector of the store belongs to nobody.
	size := (dataSize - s.Offset) / SectorSize * SectorSize
	if size > 0 && size%int64(s.SectorSize) != 0 {
		return h.faultAt(field, "dynamic, but the %d bytes up to the store's end are no whole sectors of %d", size, s.SectorSize)
	}
	return nil
}
