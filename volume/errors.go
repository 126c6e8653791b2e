package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"serpcrypt/volume/luks"
)

var (
	// ErrPassphrase says that no key slot opens with the passphrase. A damaged
	// key slot looks the same.
	ErrPassphrase = errors.New("volume: no key slot opens with this passphrase")
	// ErrNoKeySlot says that the key slot asked for, or every one, is not in use.
	ErrNoKeySlot = errors.New("volume: no such key slot in use")
	// ErrVolumeKey says that a volume key is not that of the container.
	ErrVolumeKey = errors.New("volume: this is not the container's volume key")
	// ErrSlotUsed says that a key slot is in use that was to be free.
	ErrSlotUsed = errors.New("volume: the key slot is in use")
	// ErrNoFreeSlot says that there is no room for another key.
	ErrNoFreeSlot = errors.New("volume: no key slot is free")
	// ErrLastKey says that without this key slot nobody could open the container.
	ErrLastKey = errors.New("volume: this is the last key slot in use")
	// ErrBusy says that somebody else uses the file or device, or its header.
	ErrBusy = errors.New("volume: in use")
	// ErrChanged, which is ErrBusy too, says that a header is not what it was when
	// the work began, so that nothing has been written.
	ErrChanged = fmt.Errorf("%w: another program has changed the header meanwhile", ErrBusy)
	// ErrReadOnly says that a file, or an open volume, cannot be written to.
	ErrReadOnly = errors.New("volume: read-only")
	// ErrClosed, which is fs.ErrClosed too, says that the volume has been closed.
	ErrClosed = fmt.Errorf("volume: %w", fs.ErrClosed)
	// ErrOutside says that a place is not inside the volume.
	ErrOutside = errors.New("volume: outside of the volume")
	// ErrTooLong says that more is to be copied in than the volume holds.
	ErrTooLong = errors.New("volume: longer than the volume")
	// ErrUnfinished says that something was copied into the volume in part.
	ErrUnfinished = errors.New("volume: the import is not finished")
	// ErrReplaced says that a path does not lead to the file that was opened by it.
	ErrReplaced = errors.New("volume: the name belongs to another file by now, or to none")
)

// FormatError says that something is not as a container must be, and where.
type FormatError = luks.FieldError

func isFormatError(err error) bool { return errors.As(err, new(*FormatError)) }

// ParamError says what about a parameter is not possible. Others that are
// returned for that are *modes.SpecError, *hashes.UnknownError and
// *kdf.Argon2Error.
type ParamError = luks.ParamError

// ForeignBackupError says that a backup is of another volume than that whose
// header it shall become.
type ForeignBackupError struct {
	Differs []string // "UUID", "payload offset", ...
}

func (e *ForeignBackupError) Error() string {
	return fmt.Sprintf("volume: the backup is of another volume: %s differs", strings.Join(e.Differs, ", "))
}

// FileError says why a path can hold no container.
type FileError struct{ Path, Reason string }

func (e *FileError) Error() string { return fmt.Sprintf("volume: %s: %s", e.Path, e.Reason) }

// SizeError says that a container does not fit.
type SizeError struct {
	Size int64 // bytes that there are
	Need int64 // bytes that there must be
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("volume: %d bytes are too few for a container, which takes at least %d", e.Size, e.Need)
}
