package volume

import (
	"context"
	"errors"
	"fmt"

	"serpcrypt/internal/secret"
	"serpcrypt/volume/luks1"
)

// container is what the rest of the package needs to know of a format.
type container interface {
	header() *Header
	// faults returns all that is wrong with the header, validate the first that
	// keeps the container from being used.
	faults() []*FormatError
	validate() error
	// usableSlots returns the key slots to try if none is asked for.
	usableSlots() []int
	// checkSlot returns ErrNoKeySlot, or what keeps a key slot from being tried.
	checkSlot(slot int) error
	// openSlots returns the first of the slots that opens and the volume key, or
	// luks.ErrMismatch.
	openSlots(ctx context.Context, slots []int, passphrase []byte) (slot int, key *secret.Buffer, err error)
	// checkKey returns luks.ErrMismatch for a key that is not the container's.
	checkKey(ctx context.Context, key []byte) error
	headerEditor

	// extents returns where the volume's sectors are, in order and without gap, or
	// nothing if nobody has named the data.
	extents() ([]extent, error)
}

// headerEditor is what changes a header. None of its methods takes a lock, and
// each writes in an order that leaves a good header whenever it is interrupted;
// but restoring needs one of the same volume for that.
type headerEditor interface {
	// isSame reports whether other is what this container is read as now.
	isSame(other container) bool
	// freeSlot returns the slot if it is free, or the first free one for AnySlot.
	freeSlot(slot int) (int, error)
	// changedSlot returns the slot that takes the place of another.
	changedSlot(slot int) (int, error)
	// sealSlot makes a key slot, and writes nothing yet.
	sealSlot(ctx context.Context, slot int, key, passphrase []byte, p KeyParams) (sealedSlot, error)
	addKey(s sealedSlot) error
	changeKey(old int, s sealedSlot) error
	removeKeys(slots ...int) error
	// erase returns what destroys all key slots, also where the container cannot be
	// used, if it is sure where they are.
	erase() (commit func() error, err error)

	// configure returns what writes the new texts.
	configure(t Texts) (commit func() error, err error)
	// statePayloadSize returns what makes the header state another size of the
	// payload, in bytes, if it states one.
	statePayloadSize(size int64) (commit func() error, err error)
	// parts returns the bytes of the header's store that mean something, in
	// order, and where the last that may do so ends.
	parts() (used []byteRange, end int64, err error)
	// convert returns what makes it a container of the other format.
	convert() (commit func() error, err error)
	// restoreTo makes the container the one at another location, where now is the
	// present one, or nil if that is of no use. It returns what writes.
	restoreTo(at location, now container) (commit func() error, err error)
	// mend returns what mends the faults that need no guess and that confirm
	// agrees to, and what that is; nothing if there is none.
	mend(confirm func(*FormatError) bool) (mended []string, commit func() error, err error)
}

// sealedSlot is a key slot of the container's format, ready to be written.
type sealedSlot any

// readContainer finds out which format the container has and reads its header,
// under the lock for that.
func readContainer(ctx context.Context, at Stores) (container, error) {
	unlock, err := lockHeader(ctx, at.Header, SharedLock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return parseContainer(at)
}

// parseContainer is readContainer for those who have a lock.
func parseContainer(at Stores) (container, error) {
	location, err := at.location()
	if err != nil {
		return nil, err
	}
	head := make([]byte, min(location.headerSize, luks1.HeaderSize))
	unreadable := readFull(at.Header, head, 0)
	c1, err1 := parseLUKS1(location, head)
	if err1 == nil && unreadable == nil {
		return c1, nil
	}
	c2, err2 := parseLUKS2(location)
	switch {
	case err2 == nil: // perhaps by its secondary copy
		return c2, nil
	case unreadable != nil:
		return nil, fmt.Errorf("volume: header: %w", unreadable)
	}
	// The magic is the same, and where it is not, nothing more is to be said.
	if fault := new(FormatError); errors.As(err2, &fault) && fault.Field == "magic" {
		return nil, err1
	}
	return nil, err2
}

// openContainer is readContainer for one that has to be usable.
func openContainer(ctx context.Context, at Stores) (container, error) {
	c, err := readContainer(ctx, at)
	if err != nil {
		return nil, err
	}
	return c, checkContainer(c)
}

// checkContainer returns what keeps a container from being used.
func checkContainer(c container) error {
	if err := c.validate(); err != nil {
		return err
	}
	_, err := c.extents()
	return err
}
