// Package luks has what the versions of LUKS have in common beside their key
// slots: errors, and what both ask of fields and parameters.
package luks

import (
	"errors"

	"github.com/google/uuid"

	"serpcrypt/cipher/modes"
	"serpcrypt/kdf"
)

// NewUUID returns the UUID in its usual form, or a random one for none. The error
// is a *ParamError.
func NewUUID(wanted string) (string, error) {
	if wanted == "" {
		return uuid.NewString(), nil
	}
	id, err := uuid.Parse(wanted)
	if err != nil {
		return "", BadParam("UUID", "%q is no UUID", wanted)
	}
	return id.String(), nil
}

// IsUUID reports whether a header can have this UUID.
func IsUUID(text string) bool {
	const length = 36 // of the only one of the forms that the uuid package reads
	return len(text) == length && uuid.Validate(text) == nil
}

// CheckSlotNumber returns a *ParamError for a key slot that is none of so many.
func CheckSlotNumber(slot, slots int) error {
	if slot < 0 || slot >= slots {
		return BadParam("key slot", "%d (there are 0 to %d)", slot, slots-1)
	}
	return nil
}

// CheckIterations keeps what is written to what the specifications and the fields
// allow; older containers may have less. The error is a *ParamError.
func CheckIterations(param string, n int) error {
	if n < kdf.MinIterations || n > kdf.MaxIterations {
		return BadParam(param, "%d (allowed: %d to %d)", n, kdf.MinIterations, kdf.MaxIterations)
	}
	return nil
}

// Reason returns the text of an error about a cipher without the cipher, which a
// *FieldError names.
func Reason(err error) string {
	var spec *modes.SpecError
	if errors.As(err, &spec) {
		return spec.Reason
	}
	return err.Error()
}
