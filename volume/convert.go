package volume

import (
	"context"
	"fmt"

	"serpcrypt/volume/luks"
)

// ConvertError says why a container cannot get the other format.
type ConvertError struct{ To, Reason string }

func (e *ConvertError) Error() string {
	return fmt.Sprintf("volume: this container cannot become %s: %s", e.To, e.Reason)
}

// Convert gives a container the header of the other format, TypeLUKS1 or
// TypeLUKS2. The key slots open with the same passphrases and keep their numbers,
// and the payload is not touched. Nobody may use the container meanwhile.
//
// All that could keep it from succeeding is found before anything is written.
// Whenever it is interrupted there is a good header of one of the formats, with
// all keys; the number of one key slot may be another.
//
// Errors: a *ConvertError, ErrBusy, a *FormatError, that of ctx, or those of the
// store.
func Convert(ctx context.Context, header Store, to string) error {
	return edit(ctx, header, func(c container) (func() error, error) {
		if to != TypeLUKS1 && to != TypeLUKS2 {
			return nil, luks.BadParam("type", "%q (%s or %s)", to, TypeLUKS1, TypeLUKS2)
		}
		if c.header().Type == to {
			return nil, &ConvertError{to, "it is " + to + " already"}
		}
		return c.convert()
	})
}
