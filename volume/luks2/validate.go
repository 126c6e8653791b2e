package luks2

import "fmt"

// FieldError says what is wrong with a header, and where.
type FieldError struct {
	Field  string // of the binary header by its name there, or the path of a member: "keyslots.3.area.offset"
	Slot   int    // the key slot, or -1
	Offset int64  // of the field, in bytes from the start of the header's store
	Reason string
	// Usable: the container can be used, but for the key slot if one is named.
	Usable bool
}

const noSlot = -1

func (e *FieldError) Error() string {
	return fmt.Sprintf("luks2: %s (byte %d): %s", e.Field, e.Offset, e.Reason)
}
