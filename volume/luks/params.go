// Package luks has what both versions of LUKS ask of the parameters of a new
// header or key slot.
package luks

import (
	"fmt"

	"github.com/google/uuid"

	"serpcrypt/kdf"
)

// ParamError says what about a parameter is not possible.
type ParamError struct{ Param, Reason string }

func (e *ParamError) Error() string { return fmt.Sprintf("luks: %s: %s", e.Param, e.Reason) }

// BadParam returns a *ParamError.
func BadParam(param, format string, a ...any) error {
	return &ParamError{param, fmt.Sprintf(format, a...)}
}

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

// CheckIterations keeps what is written to what the specifications and the fields
// allow; older containers may have less. The error is a *ParamError.
func CheckIterations(param string, n int) error {
	if n < kdf.MinIterations || n > kdf.MaxIterations {
		return BadParam(param, "%d (allowed: %d to %d)", n, kdf.MinIterations, kdf.MaxIterations)
	}
	return nil
}
