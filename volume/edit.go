package volume

import "context"

// edit changes a header in two steps. prepare may take its time, as deriving a
// key does, and writes nothing. What it returns writes, under the header's lock
// and only if the header is still the one that prepare was given.
//
// From there on ctx counts no more: an update that has begun is finished.
func edit(ctx context.Context, header Store, prepare func(c container) (commit func() error, err error)) error {
	c, err := openContainer(ctx, Stores{Header: header})
	if err != nil {
		return err
	}
	return editContainer(ctx, header, c, prepare)
}

// editContainer is edit for a header that has been read, or nil if there is none
// that could be.
func editContainer(ctx context.Context, header Store, c container, prepare func(c container) (commit func() error, err error)) error {
	commit, err := prepare(c)
	if err != nil {
		return err
	}
	unlock, err := lockHeader(ctx, header, ExclusiveLock)
	if err != nil {
		return err
	}
	defer unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := stillThere(header, c); err != nil {
		return err
	}
	return commit()
}

// stillThere returns ErrChanged if the header is not c, as which it was read
// before.
func stillThere(header Store, c container) error {
	now, err := parseContainer(Stores{Header: header})
	switch {
	case c == nil && err != nil:
		return nil
	case err != nil:
		return err
	case c == nil || !c.isSame(now):
		return ErrChanged
	}
	return nil
}
