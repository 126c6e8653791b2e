package luks

import (
	"errors"
	"fmt"
)

var (
	// ErrMismatch says that a passphrase or volume key is not the right one.
	ErrMismatch = errors.New("luks: the volume key does not match the digest")
	// ErrSlotUnused says that a key slot cannot be opened by any passphrase.
	ErrSlotUnused = errors.New("luks: the key slot is not in use")
	// ErrSlotUsed says that writing would destroy a key slot.
	ErrSlotUsed = errors.New("luks: the key slot is in use")
)

// ParamError says what about a parameter is not possible.
type ParamError struct{ Param, Reason string }

func (e *ParamError) Error() string { return fmt.Sprintf("luks: %s: %s", e.Param, e.Reason) }

// BadParam returns a *ParamError.
func BadParam(param, format string, a ...any) error {
	return &ParamError{param, fmt.Sprintf(format, a...)}
}

// FieldError says that something is not as a container must have it, and where.
type FieldError struct {
	Field  string // of the header, by its name in the package of the format; or "payload" and the like
	Slot   int    // the key slot that Field belongs to, or NoSlot
	Offset int64  // in bytes from the start of the store
	Reason string
}

// NoSlot is the number of a key slot where there is none.
const NoSlot = -1

func (e *FieldError) Error() string {
	return fmt.Sprintf("luks: %s: %s", place(e.Field, e.Slot, e.Offset), e.Reason)
}

func place(field string, slot int, offset int64) string {
	if slot == NoSlot {
		return fmt.Sprintf("%s at byte %d", field, offset)
	}
	return fmt.Sprintf("key slot %d: %s at byte %d", slot, field, offset)
}

// BadField returns a *FieldError.
func BadField(field string, slot int, offset int64, format string, a ...any) *FieldError {
	return &FieldError{field, slot, offset, fmt.Sprintf(format, a...)}
}
