package volume

import (
	"bytes"
	"testing"

	"serpcrypt/internal/faultstore"
)

// keyFromSlot is a key without derivation, as if it came out of a slot.
func (c *subject) keyFromSlot(slot int) *Key { return &Key{Bytes: secretCopy(c.volumeKey), Slot: slot} }

const (
	uuidAfter = "6ba7b811-9dad-11d1-80b4-00c04fd430c8"
)

// backup returns what BackupHeader makes of the whole container.
func (c *subject) backup() *faultstore.Store {
	var backup bytes.Buffer
	if err := BackupHeader(background, c.whole, &backup); err != nil {
		panic(err)
	}
	return faultstore.New(backup.Bytes())
}

func restoreWhole(s Store, c *subject) error {
	return RestoreHeader(background, Attached(s), c.backup(), false)
}

// isWhole checks that the header and its keys are as they were at first.
func isWhole(t *testing.T, c *subject, s *faultstore.Store) {
	t.Helper()
	opensWith(oldPassphrase, otherPassphrase)(t, c, s)
	var got bytes.Buffer
	if err := BackupHeader(background, s, &got); err != nil {
		t.Error(err)
	}
	if c.format == TypeLUKS1 && !bytes.Equal(got.Bytes(), c.backup().Bytes()) {
		t.Error("what is restored is not what was backed up")
	}
}

// updates are all changes of a header that there are.
var updates = []update{
	{
		name: "add a key",
		run: func(s Store, c *subject) error {
			_, err := AddKey(background, s, c.keyFromSlot(AnySlot), newPassphrase, AnySlot, quickKey)
			return err
		},
		always: [][]byte{oldPassphrase, otherPassphrase},
		done:   opensWith(oldPassphrase, otherPassphrase, newPassphrase),
	},
	{
		name: "add a key in the slot that lies in two sectors of LUKS1",
		run: func(s Store, c *subject) error {
			_, err := AddKey(background, s, c.keyFromSlot(AnySlot), newPassphrase, 6, quickKey)
			return err
		},
		always: [][]byte{oldPassphrase, otherPassphrase},
		done:   opensWith(oldPassphrase, otherPassphrase, newPassphrase),
	},
	{
		name: "remove the key in the slot that lies in two sectors of LUKS1",
		prepare: func(t *testing.T, c *subject, s *faultstore.Store) {
			if _, err := AddKey(background, s, c.keyFromSlot(AnySlot), newPassphrase, 6, quickKey); err != nil {
				t.Fatal(err)
			}
		},
		run:    func(s Store, c *subject) error { return RemoveKey(background, s, 6, false) },
		always: [][]byte{oldPassphrase, otherPassphrase},
		done:   opensWith(oldPassphrase, otherPassphrase),
	},
	{
		name: "change a key",
		run: func(s Store, c *subject) error {
			_, err := ChangeKey(background, s, c.keyFromSlot(0), newPassphrase, quickKey)
			return err
		},
		always: [][]byte{otherPassphrase},
		oneOf:  [][]byte{oldPassphrase, newPassphrase},
		done:   opensWith(otherPassphrase, newPassphrase),
	},
	{
		name:   "remove a key",
		run:    func(s Store, c *subject) error { return RemoveKey(background, s, 0, false) },
		always: [][]byte{otherPassphrase},
		done:   opensWith(otherPassphrase),
	},
	{
		name: "erase",
		run:  func(s Store, c *subject) error { return Erase(background, s) },
		done: opensWith(),
	},
	{
		name: "set the UUID",
		run: func(s Store, c *subject) error {
			id := uuidAfter
			return Configure(background, s, Texts{UUID: &id})
		},
		always: [][]byte{oldPassphrase, otherPassphrase},
		done: func(t *testing.T, c *subject, s *faultstore.Store) {
			opensWith(oldPassphrase, otherPassphrase)(t, c, s)
			if h, err := ReadHeader(Attached(s)); err != nil || h.UUID != uuidAfter {
				t.Errorf("the UUID is %q (%v), want %q", h.UUID, err, uuidAfter)
			}
		},
	},
	{
		name: "restore when a key has been changed",
		prepare: func(t *testing.T, c *subject, s *faultstore.Store) {
			if _, err := ChangeKey(background, s, c.keyFromSlot(0), newPassphrase, quickKey); err != nil {
				t.Fatal(err)
			}
		},
		run:    restoreWhole,
		always: [][]byte{otherPassphrase},
		oneOf:  [][]byte{oldPassphrase, newPassphrase},
		done:   isWhole,
	},
	{
		name: "restore when another key has taken the slot",
		prepare: func(t *testing.T, c *subject, s *faultstore.Store) {
			// The other one takes the free place before, so that the new material lies
			// where the old was with LUKS2 too.
			if _, err := AddKey(background, s, c.keyFromSlot(AnySlot), []byte("another"), 5, quickKey); err != nil {
				t.Fatal(err)
			}
			if err := RemoveKey(background, s, 0, false); err != nil {
				t.Fatal(err)
			}
			if _, err := AddKey(background, s, c.keyFromSlot(AnySlot), newPassphrase, 0, quickKey); err != nil {
				t.Fatal(err)
			}
			if got, want := headerOf(t, s).Slots[0].MaterialOffset, headerOf(t, c.whole).Slots[0].MaterialOffset; got != want {
				t.Fatalf("the new material lies at %d, want %d", got, want)
			}
		},
		run:    restoreWhole,
		always: [][]byte{otherPassphrase},
		oneOf:  [][]byte{oldPassphrase, newPassphrase},
		done:   isWhole,
	},
	{
		name: "restore when all has been erased",
		prepare: func(t *testing.T, c *subject, s *faultstore.Store) {
			if err := Erase(background, s); err != nil {
				t.Fatal(err)
			}
		},
		run:  restoreWhole,
		done: isWhole,
	},
	{
		name: "restore when the header is gone",
		prepare: func(t *testing.T, c *subject, s *faultstore.Store) {
			if _, err := s.WriteAt(make([]byte, 512<<10), 0); err != nil {
				t.Fatal(err)
			}
		},
		run:  restoreWhole,
		done: isWhole,
	},
	{
		name: "repair",
		prepare: func(t *testing.T, c *subject, s *faultstore.Store) {
			if c.format == TypeLUKS2 {
				flip(s, 5000) // of the primary copy
				return
			}
			putSlotField(t, s, 5, atActive, 7)
		},
		run: func(s Store, c *subject) error {
			_, err := Repair(background, s, func(*FormatError) bool { return true }, func() error { return nil })
			return err
		},
		always: [][]byte{oldPassphrase, otherPassphrase},
		done: func(t *testing.T, c *subject, s *faultstore.Store) {
			opensWith(oldPassphrase, otherPassphrase)(t, c, s)
			if err := verifyHeaderOf(t, s); err != nil {
				t.Error(err)
			}
		},
	},
	{
		name:   "convert",
		run:    convertToOther,
		always: [][]byte{oldPassphrase, otherPassphrase},
		done: func(t *testing.T, c *subject, s *faultstore.Store) {
			opensWith(oldPassphrase, otherPassphrase)(t, c, s)
			if h := headerOf(t, s); h.Type == c.format || len(h.Warnings) > 0 {
				t.Errorf("it is %s still, or has %v", h.Type, h.Warnings)
			}
			if err := verifyHeaderOf(t, s); err != nil {
				t.Error(err)
			}
			for slot, passphrase := range [][]byte{oldPassphrase, otherPassphrase} {
				if got := keyOf(t, s, passphrase).Slot; got != slot {
					t.Errorf("%q opens key slot %d, want %d", passphrase, got, slot)
				}
			}
		},
	},
}

func otherFormat(format string) string {
	return map[string]string{TypeLUKS1: TypeLUKS2, TypeLUKS2: TypeLUKS1}[format]
}

func convertToOther(s Store, c *subject) error {
	return Convert(background, s, otherFormat(c.format))
}
