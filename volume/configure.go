package volume

import "context"

// Texts are what a header says for people and udev rules. Those that are nil
// stay as they are.
type Texts struct {
	UUID             *string // empty: a new random one
	Label, Subsystem *string // LUKS2 only
}

// Configure changes texts of a header. Errors: a *ParamError, ErrBusy, a
// *FormatError, that of ctx, or those of the store.
func Configure(ctx context.Context, header Store, t Texts) error {
	return edit(ctx, header, func(c container) (func() error, error) { return c.configure(t) })
}
