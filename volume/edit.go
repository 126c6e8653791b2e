package volume

import (
	"context"
	"fmt"
)

// edit changes a header in two steps. prepare may take its time, as deriving a
// key does, and writes nothing. What it returns writes, under the header's lock
// and only if the header is still the one that prepare was given.
//
// From there on ctx counts no more: an update that has begun is finished.
func edit(ctx context.Context, header Store, prepare func(c container) (commit func() error, err error)) error {
	at := Stores{Header: header}
	c, err := openContainer(ctx, at)
	if err != nil {
		return err
	}
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
	now, err := parseContainer(at)
	if err != nil {
		return err
	}
	if !c.isSame(now) {
		return fmt.Errorf("%w: another program has changed the header meanwhile", ErrBusy)
	}
	return commit()
}
