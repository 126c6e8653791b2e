package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/volume"
)

// check checks what must hold, whatever has happened.
func (k *killing) check(t *testing.T, when string) {
	t.Helper()
	if k.holds != nil {
		k.holds(t, k, when)
		return
	}
	k.leavesNothing(t, when)
	if k.mayBeUnreadable && !k.readable(t) {
		k.run(t, undisturbed)
	}
	at, closeBoth := k.open(t, when)
	if at.Header == nil {
		return
	}
	defer closeBoth()
	var key *volume.Key
	opens := func(passphrase string) bool {
		got, err := volume.Unlock(context.Background(), at, []byte(passphrase), volume.AnySlot, nil)
		if err != nil {
			if !errors.Is(err, volume.ErrPassphrase) && !errors.Is(err, volume.ErrNoKeySlot) {
				t.Errorf("%s: %q: %v", when, passphrase, err)
			}
			return false
		}
		if key != nil {
			got.Close()
		} else {
			key = got
		}
		return true
	}
	for _, passphrase := range k.always {
		if !opens(passphrase) {
			t.Errorf("%s: %q opens nothing", when, passphrase)
		}
	}
	any := len(k.oneOf) == 0
	for _, passphrase := range k.oneOf {
		any = opens(passphrase) || any
	}
	if !any {
		t.Errorf("%s: none of %q opens", when, k.oneOf)
	}
	if len(k.always) == 0 && !opens(oldPassphrase) {
		// Nobody can look inside.
		k.holdsCiphertext(t, at, when)
		return
	}
	if key == nil {
		return
	}
	defer key.Close()
	k.holdsPlaintext(t, at, key, when)
	k.canBeChanged(t, at, key, when)
}

// leavesNothing checks that there are no files but those that were there, and a
// backup, if it is whole.
func (k *killing) leavesNothing(t *testing.T, when string) {
	t.Helper()
	for _, name := range strings.Fields(names(t, k.folder)) {
		_, wasThere := k.before[name]
		switch {
		case name == k.backup && k.backup != "":
			if content(t, filepath.Join(k.folder, name)) != string(k.backups) {
				t.Errorf("%s: %s is not the backup that it should be", when, name)
			}
		case !wasThere:
			t.Errorf("%s: it leaves %s", when, name)
		case name != "box" && name != k.headerFile() && !k.same(t, name):
			t.Errorf("%s: %s has changed", when, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.before)) {
		if !exists(filepath.Join(k.folder, name)) {
			t.Errorf("%s: %s is gone", when, name)
		}
	}
}

func (k *killing) readable(t *testing.T) bool {
	t.Helper()
	file, err := volume.PeekFile(filepath.Join(k.folder, k.headerFile()))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, err = volume.ReadHeader(volume.Stores{Header: file})
	return err == nil
}

// open opens the container for us alone: nobody has it locked. If it cannot be
// read, at is empty.
func (k *killing) open(t *testing.T, when string) (at volume.Stores, closeBoth func()) {
	t.Helper()
	data, err := volume.OpenFile(filepath.Join(k.folder, "box"), false)
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	header := data
	if k.detached {
		if header, err = volume.OpenFile(filepath.Join(k.folder, "head"), false); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	closeBoth = func() { data.Close(); header.Close() }
	if err := unix.Flock(int(header.OSFile().Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("%s: the header is locked: %v", when, err)
	}
	at = volume.Stores{Header: header, Data: data}
	if _, err := volume.ReadHeader(at); err != nil {
		t.Errorf("%s: %v", when, err)
		closeBoth()
		return volume.Stores{}, nil
	}
	return at, closeBoth
}

// headerFile is the name of what the command writes to.
func (k *killing) headerFile() string {
	if k.detached {
		return "head"
	}
	return "box"
}

// keeps returns how much of the volume stays, in bytes.
func (k *killing) keeps() int64 {
	if k.kept > 0 {
		return k.kept
	}
	return int64(len(k.volume))
}

func (k *killing) holdsPlaintext(t *testing.T, at volume.Stores, key *volume.Key, when string) {
	t.Helper()
	v, err := volume.Open(at, key, volume.Options{ReadOnly: true})
	if err != nil {
		t.Errorf("%s: %v", when, err)
		return
	}
	defer v.Close()
	got := make([]byte, k.keeps())
	if _, err := v.ReadAt(got, 0); err != nil {
		t.Errorf("%s: %v", when, err)
	} else if !bytes.Equal(got, k.volume[:k.keeps()]) {
		t.Errorf("%s: the volume holds something else", when)
	}
}

func (k *killing) holdsCiphertext(t *testing.T, at volume.Stores, when string) {
	t.Helper()
	h, err := volume.ReadHeader(at)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, filepath.Join(k.folder, "box"))[h.PayloadOffset:], string(k.before["box"][h.PayloadOffset:]); got != want {
		t.Errorf("%s: the payload has changed", when)
	}
}

// canBeChanged adds a key to what is left.
func (k *killing) canBeChanged(t *testing.T, at volume.Stores, key *volume.Key, when string) {
	t.Helper()
	passphrase := []byte("added afterwards")
	slot, err := volume.AddKey(context.Background(), at.Header, key, passphrase, volume.AnySlot, volume.KeyParams{Iterations: 1000})
	if err != nil {
		t.Errorf("%s: add a key: %v", when, err)
		return
	}
	opened, err := volume.Unlock(context.Background(), at, passphrase, slot, nil)
	if err != nil {
		t.Errorf("%s: the key that was added: %v", when, err)
		return
	}
	opened.Close()
}
