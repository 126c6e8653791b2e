package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"serpcrypt/kdf"
	"serpcrypt/volume"
	"serpcrypt/volume/luks2"
)

// The exit codes, as cryptsetup has them.
const (
	exitOK         = 0
	exitUsage      = 1   // wrong parameters
	exitPermission = 2   // wrong passphrase, or no permission
	exitMemory     = 3   // out of memory
	exitBad        = 4   // wrong or damaged device or file
	exitBusy       = 5   // exists already, or is in use
	exitSignal     = 128 // plus the number of the signal
)

// failure is an error that knows its exit code or what to do about it.
type failure struct {
	code int    // 0: what the wrapped error asks for
	hint string // "": none, or that of the wrapped error
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usagef returns an error about the command line (exit code 1).
func usagef(format string, a ...any) error { return failf(exitUsage, "", format, a...) }

// failf returns an error with an exit code and a hint, which may be empty.
func failf(code int, hint, format string, a ...any) error {
	return &failure{code: code, hint: hint, err: fmt.Errorf(format, a...)}
}

// withHint adds advice to err and leaves its exit code. nil stays nil.
func withHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &failure{hint: hint, err: err}
}

// explain says with which code the program ends after err, and what the person
// can do about it ("" if there is nothing to say).
func explain(err error) (code int, hint string) {
	for e := err; ; {
		var f *failure
		if !errors.As(e, &f) {
			break
		}
		if code == 0 {
			code = f.code
		}
		if hint == "" {
			hint = f.hint
		}
		e = f.err
	}
	if code == 0 {
		code = codeOf(err)
	}
	if hint == "" {
		hint = hintOf(err)
	}
	return code, hint
}

func codeOf(err error) int {
	var interrupted *signalError
	var memory *kdf.MemoryError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &interrupted):
		return exitSignal + int(interrupted.signal)
	case errors.Is(err, volume.ErrPassphrase), errors.Is(err, volume.ErrVolumeKey), errors.Is(err, volume.ErrReadOnly),
		errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return exitPermission
	case errors.Is(err, syscall.ENOMEM), errors.As(err, &memory):
		return exitMemory
	case errors.Is(err, volume.ErrBusy), errors.Is(err, volume.ErrReplaced), errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.ETXTBSY),
		errors.Is(err, volume.ErrSlotUsed), errors.Is(err, volume.ErrNoFreeSlot), errors.Is(err, volume.ErrLastKey):
		return exitBusy
	}
	var number syscall.Errno
	var badFormat *volume.FormatError
	var badFile *volume.FileError
	var foreign *volume.ForeignBackupError
	var unconvertible *volume.ConvertError
	var requirement *luks2.RequirementError
	switch {
	case errors.As(err, &badFormat), errors.As(err, &badFile), errors.As(err, &foreign), errors.As(err, &unconvertible), errors.As(err, &requirement), errors.As(err, &number),
		errors.Is(err, fs.ErrNotExist), errors.Is(err, io.ErrUnexpectedEOF):
		return exitBad
	}
	return exitUsage
}

func hintOf(err error) string {
	var requirement *luks2.RequirementError
	var memory *kdf.MemoryError
	var foreign *volume.ForeignBackupError
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return hintNoSpace
	case errors.Is(err, syscall.EROFS):
		return "copy it to a disk that can be written, or make this one so (mount -o remount,rw)"
	case errors.Is(err, volume.ErrChanged):
		return hintTryAgain
	case errors.Is(err, volume.ErrBusy):
		return hintBusy
	case errors.Is(err, volume.ErrPassphrase):
		return hintDamagedSlot
	case errors.Is(err, volume.ErrSlotUsed), errors.Is(err, volume.ErrNoKeySlot):
		return hintKeyList
	case errors.Is(err, volume.ErrNoFreeSlot):
		return "serpcrypt key remove makes room"
	case errors.As(err, &requirement):
		return "cryptsetup may know what that is; serpcrypt dump shows the header"
	case errors.As(err, &foreign):
		return "--force restores it all the same"
	case errors.Is(err, syscall.ENOMEM), errors.As(err, &memory):
		return hintMemory
	case errors.Is(err, fs.ErrPermission):
		return hintPermission
	}
	return ""
}
