package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// BackupHeader writes a copy of the header with all key slots in use to w, which
// RestoreHeader and cryptsetup read. All other bytes of it are zero: what is
// left of removed keys is not kept.
//
// Errors: ErrBusy, a *FormatError if there is no header or one that does not say
// how long it is, that of ctx, or those of the store and w.
func BackupHeader(ctx context.Context, header Store, w io.Writer) error {
	backup, err := readParts(ctx, header)
	if err != nil {
		return err
	}
	if _, err := w.Write(backup); err != nil {
		return fmt.Errorf("volume: backup of the header: %w", err)
	}
	return nil
}

// readParts returns what a backup is. The lock is gone before anybody waits for
// where that is written.
func readParts(ctx context.Context, header Store) ([]byte, error) {
	unlock, err := lockHeader(ctx, header, SharedLock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c, err := parseContainer(Stores{Header: header})
	if err != nil {
		return nil, err
	}
	used, end, err := c.parts()
	if err != nil {
		return nil, err
	}
	backup := make([]byte, end)
	for _, r := range used {
		if err := readFull(header, backup[r.from:r.to], r.from); err != nil {
			return nil, fmt.Errorf("volume: header: %w", err)
		}
	}
	return backup, nil
}

// RestoreHeader makes a backup the header of a container again, whatever has
// become of that. at.Data may be nil if the header is detached.
//
// If the container has a header of another volume still, the error is a
// *ForeignBackupError, and that of the store if its header cannot be read; not
// with force. If it has one of the same volume, the keys of both stay, until all
// those of the backup are in use; where a key has changed its slot, one of the two
// opens at any time if a slot is free. Otherwise, until the work is done, there is
// no header.
//
// Other errors: a *FormatError of the backup or because it does not fit, ErrBusy,
// that of ctx, or those of the stores.
func RestoreHeader(ctx context.Context, at Stores, backup Store, force bool) error {
	b, err := openContainer(ctx, Stores{Header: backup})
	if err != nil {
		return fmt.Errorf("volume: backup: %w", err)
	}
	now, err := readContainer(ctx, Stores{Header: at.Header})
	switch {
	case err == nil:
	case errors.Is(err, ErrBusy), ctx.Err() != nil, !isFormatError(err) && !force:
		return err
	default: // writing an unreadable sector may make it good
		now = nil
	}
	if now != nil && !force {
		if differs := differences(now.header(), b.header()); len(differs) > 0 {
			return &ForeignBackupError{differs}
		}
	}
	location, err := at.location()
	if err != nil {
		return err
	}
	return editContainer(ctx, at.Header, now, func(container) (func() error, error) { return b.restoreTo(location, now) })
}

// differences names what tells the headers of two volumes apart.
func differences(a, b *Header) []string {
	var differs []string
	for _, d := range []struct {
		name string
		is   bool
	}{
		{"format", a.Type != b.Type},
		{"UUID", a.UUID != b.UUID},
		{"payload offset", a.PayloadOffset != b.PayloadOffset},
		{"key size", a.KeyBytes != b.KeyBytes && a.KeyBytes != 0}, // LUKS2 without keys does not tell
		{"volume key", a.Type == b.Type && !isSameKey(a, b)},
	} {
		if d.is {
			differs = append(differs, d.name)
		}
	}
	return differs
}

// isSameKey reports whether two headers have the digest of one volume key.
func isSameKey(a, b *Header) bool {
	return string(a.Digest) == string(b.Digest) && string(a.DigestSalt) == string(b.DigestSalt) && a.DigestIterations == b.DigestIterations
}
