package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"serpcrypt/kdf"
	"serpcrypt/volume"
)

func TestExplain(t *testing.T) {
	_, missing := os.Open("/does/not/exist")
	for _, test := range []struct {
		err  error
		code int
		hint string
	}{
		{usagef("bad"), exitUsage, ""},
		{volume.ErrPassphrase, exitPermission, hintDamagedSlot},
		{volume.ErrVolumeKey, exitPermission, ""},
		{volume.ErrNoKeySlot, exitUsage, hintKeyList},
		{volume.ErrSlotUsed, exitBusy, hintKeyList},
		{volume.ErrLastKey, exitBusy, ""},
		{fmt.Errorf("open: %w", &kdf.MemoryError{}), exitMemory, "close other programs, or use a machine with more memory"},
		{volume.ErrTooLong, exitUsage, ""},
		{&volume.SizeError{}, exitUsage, ""},
		{fmt.Errorf("open: %w", volume.ErrBusy), exitBusy, hintBusy},
		{fmt.Errorf("key: %w", volume.ErrChanged), exitBusy, hintTryAgain},
		{&volume.FormatError{Field: "magic"}, exitBad, ""},
		{&volume.FileError{}, exitBad, ""},
		{io.ErrUnexpectedEOF, exitBad, ""},
		{errors.New("anything"), exitUsage, ""},
		{missing, exitBad, ""},
		{fmt.Errorf("open: %w", fs.ErrPermission), exitPermission, hintPermission},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, exitPermission, hintPermission},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EBUSY}, exitBusy, ""},
		{&fs.PathError{Op: "link", Path: "x", Err: syscall.EEXIST}, exitBusy, ""},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, exitBad, hintNoSpace},
		{&fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}, exitBad, ""},
		{syscall.ENOMEM, exitMemory, hintMemory},
		{&signalError{syscall.SIGINT}, 130, ""},
		{&signalError{syscall.SIGTERM}, 143, ""},
		{withHint(syscall.EIO, "do"), exitBad, "do"},
		{fmt.Errorf("more: %w", failf(exitBusy, "do", "in use: %w", io.EOF)), exitBusy, "do"},
		{withHint(failf(exitBusy, "inner", "in use"), "outer"), exitBusy, "outer"},
	} {
		code, hint := explain(test.err)
		if code != test.code || hint != test.hint {
			t.Errorf("explain(%v) = %d, %q, want %d, %q", test.err, code, hint, test.code, test.hint)
		}
	}
	if withHint(nil, "do") != nil {
		t.Error("withHint(nil) is an error")
	}
}

func TestConfirmWithoutTerminal(t *testing.T) {
	before := screen
	defer func() { screen = before }()
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	os.Stdin, _ = os.Open(os.DevNull)

	screen.quiet = false
	if code, _ := explain(confirm(context.Background(), "this destroys")); code != exitBusy {
		t.Errorf("with no terminal: code %d, want %d", code, exitBusy)
	}
	screen.quiet = true
	if err := confirm(context.Background(), "this destroys"); err != nil {
		t.Errorf("with -q: %v", err)
	}
}

func TestErrorText(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("volume: luks1: %w", io.EOF), "EOF"},
		{errors.New("leaf: modes: x"), "leaf: x"},
		{errors.Join(errors.New("volume: one"), errors.New("volume: two")), "one; two"},
		{errors.New("mkfs failed (fusefs: x)"), "mkfs failed (x)"},
		{errors.New("volume: write at byte 5 of the volume: write box: x"), "write at byte 5 of the volume: write box: x"},
		{errors.New("stat mnt/volume: x"), "stat mnt/volume: x"},
		{fmt.Errorf("fill: %w", &signalError{syscall.SIGINT}), "interrupted by SIGINT"},
	} {
		if got := errorText(test.err); got != test.want {
			t.Errorf("errorText(%q) = %q, want %q", test.err, got, test.want)
		}
	}
}
