package volume

import "context"

// Repair mends a header where that needs no guess: one copy of a LUKS2 header
// from the other, and a slot of LUKS1 with an impossible field, if confirm agrees
// to that. It returns what it has mended, in words.
//
// backup is called once, before anything is written and without any lock; its
// error is returned. Other errors: a *FormatError if there is something that
// cannot be mended, then nothing is written; ErrBusy, that of ctx, or those of the
// store.
func Repair(ctx context.Context, header Store, confirm func(*FormatError) bool, backup func() error) (mended []string, err error) {
	c, err := readContainer(ctx, Stores{Header: header})
	if err != nil {
		return nil, err
	}
	mended, commit, err := c.mend(confirm)
	if err != nil || len(mended) == 0 {
		return nil, err
	}
	err = editContainer(ctx, header, c, func(container) (func() error, error) { return commit, backup() })
	if err != nil {
		return nil, err
	}
	return mended, nil
}
