package volume

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks2"
)

// TestHostileLUKS2: whatever the metadata say, nothing panics or takes much
// memory, and who refuses writes nothing.
func TestHostileLUKS2(t *testing.T) {
	c := subjects(t)[1]
	slot := func(edit func(k *luks2.Keyslot)) func(h *luks2.Header) {
		return func(h *luks2.Header) { edit(h.Keyslots[1]) }
	}
	const opens, openByOther, refused = "opens", "opens by another key slot", "refused"
	for _, e := range []struct {
		name string
		want string
		edit func(h *luks2.Header)
	}{
		{"nothing", opens, func(h *luks2.Header) {}},
		{"no segment", refused, func(h *luks2.Header) { clear(h.Segments) }},
		{"two segments", refused, func(h *luks2.Header) { h.Segments[1] = h.Segments[0] }},
		{"segment of another type", refused, func(h *luks2.Header) { h.Segments[0].Type = "linear" }},
		{"segment in the header", refused, func(h *luks2.Header) { h.Segments[0].Offset = 4096 }},
		{"segment behind the end", refused, func(h *luks2.Header) { h.Segments[0].Offset = 1 << 40 }},
		{"segment at 2^63-512", refused, func(h *luks2.Header) { h.Segments[0].Offset = math.MaxInt64 &^ 511 }},
		{"segment too long", refused, func(h *luks2.Header) { h.Segments[0].Size = 1 << 40 }},
		{"sector size", refused, func(h *luks2.Header) { h.Segments[0].SectorSize = 0 }},
		{"no whole sectors", refused, func(h *luks2.Header) { h.Segments[0].SectorSize = 4096 }},
		{"cipher", refused, func(h *luks2.Header) { h.Segments[0].Encryption = "rot13-ecb" }},
		{"integrity", refused, func(h *luks2.Header) { h.Segments[0].Integrity = []byte(`{"type":"hmac(sha256)"}`) }},
		{"no digest", refused, func(h *luks2.Header) { clear(h.Digests) }},
		{"digest without slots", refused, func(h *luks2.Header) { h.Digests[0].Keyslots = nil }},
		{"digest of a slot that is not there", refused, func(h *luks2.Header) { h.Digests[0].Keyslots = []int{0, 1, 5} }},
		{"two digests", refused, func(h *luks2.Header) { h.Digests[1] = h.Digests[0] }},
		{"digest iterations", refused, func(h *luks2.Header) { h.Digests[0].Iterations = 0 }},
		{"digest hash", refused, func(h *luks2.Header) { h.Digests[0].Hash = "md5" }},
		{"keyslots area", refused, func(h *luks2.Header) { h.Config.KeyslotsSize = 1 << 50 }},
		{"requirement", refused, func(h *luks2.Header) { h.Config.Requirements.Mandatory = []string{"time-travel"} }},
		{"area in the header", refused, slot(func(k *luks2.Keyslot) { k.Area.Offset = 4096 })},
		{"area behind the keyslots area", refused, slot(func(k *luks2.Keyslot) { k.Area.Offset = 1 << 40 })},
		{"area too long", refused, slot(func(k *luks2.Keyslot) { k.Area.Size = math.MaxInt64 })},
		{"areas overlap", refused, func(h *luks2.Header) { h.Keyslots[1].Area.Offset = h.Keyslots[0].Area.Offset + 4096 }},
		{"area too short", openByOther, slot(func(k *luks2.Keyslot) { k.Area.Size = 4096 })},
		{"huge key", openByOther, slot(func(k *luks2.Keyslot) { k.KeySize = math.MaxInt32 })},
		{"no key", openByOther, slot(func(k *luks2.Keyslot) { k.KeySize = 0 })},
		{"huge key of the area", openByOther, slot(func(k *luks2.Keyslot) { k.Area.KeySize = math.MaxInt32 })},
		{"stripes", openByOther, slot(func(k *luks2.Keyslot) { k.AF.Stripes = math.MaxInt32 })},
		{"function", openByOther, slot(func(k *luks2.Keyslot) { k.KDF.Type = "scrypt" })},
		{"hash", openByOther, slot(func(k *luks2.Keyslot) { k.KDF.Hash = "md5" })},
		{"iterations", openByOther, slot(func(k *luks2.Keyslot) { k.KDF.Iterations = 0 })},
		{"slot of another type", openByOther, slot(func(k *luks2.Keyslot) { k.Type = "reencrypt" })},
		{"terabytes for argon2", openByOther, slot(func(k *luks2.Keyslot) {
			k.KDF = luks2.KDF{Type: luks2.KDFArgon2id, Salt: k.KDF.Salt, Time: 4, Memory: math.MaxInt32, CPUs: 4}
		})},
		{"priority", openByOther, slot(func(k *luks2.Keyslot) { p := 7; k.Priority = &p })},
		{"token of a slot that is not there", opens, func(h *luks2.Header) {
			h.Tokens[0] = &luks2.Token{Type: "some", Keyslots: []int{9}}
		}},
	} {
		t.Run(e.name, func(t *testing.T) {
			s := c.copy()
			found, err := luks2.Read(s, 64<<20)
			if err != nil {
				t.Fatal(err)
			}
			e.edit(found.Header)
			if err := found.Header.Save(s); err != nil {
				t.Fatal(err)
			}
			for passphrase, should := range map[string]bool{
				string(oldPassphrase): e.want != refused, string(otherPassphrase): e.want == opens,
			} {
				key, err := Unlock(background, Attached(s), []byte(passphrase), AnySlot, nil)
				if err == nil {
					key.Close()
				}
				if (err == nil) != should {
					t.Errorf("%q: %v", passphrase, err)
				}
				isWrong := errors.Is(err, ErrPassphrase) || isFormatError(err) || errors.As(err, new(*luks2.RequirementError))
				if err != nil && (!isWrong || e.want == refused && errors.Is(err, ErrPassphrase)) {
					t.Errorf("%q: %v is no answer", passphrase, err)
				}
			}
			tryEverything(t, c, s, e.want == refused)
		})
	}
}

// tryEverything calls all that reads or changes a header. If it is to be refused
// nothing may be written.
func tryEverything(t *testing.T, c *subject, s *faultstore.Store, refused bool) {
	t.Helper()
	key := c.keyFromSlot(1)
	label := "x"
	before := s.Bytes()
	calls := map[string]func(s *faultstore.Store) error{
		"open": func(s *faultstore.Store) error { _, err := Open(Attached(s), key, Options{}); return err },
		"add": func(s *faultstore.Store) error {
			_, err := AddKey(background, s, key, newPassphrase, AnySlot, quickKey)
			return err
		},
		"change": func(s *faultstore.Store) error {
			_, err := ChangeKey(background, s, key, newPassphrase, quickKey)
			return err
		},
		"remove":  func(s *faultstore.Store) error { return RemoveKey(background, s, 1, true) },
		"config":  func(s *faultstore.Store) error { return Configure(background, s, Texts{Label: &label}) },
		"erase":   func(s *faultstore.Store) error { return Erase(background, s) },
		"convert": func(s *faultstore.Store) error { return Convert(background, s, TypeLUKS1) },
	}
	for name, call := range calls {
		s := faultstore.New(bytes.Clone(before))
		if err := call(s); refused && err == nil && name != "convert" {
			// What concerns only the end of the payload's store does not matter to the header.
			if _, err := ReadHeader(Stores{Header: s}); err != nil {
				t.Errorf("%s is not refused", name)
			}
		} else if err != nil && !bytes.Equal(s.Bytes(), before) {
			t.Errorf("%s: %v, and something was written", name, err)
		}
	}
	for name, look := range map[string]func() error{
		"verify": func() error { _, err := Verify(background, Attached(s), nil, Options{}, nil); return err },
		"header": func() error { _, err := ReadHeader(Attached(s)); return err },
		"backup": func() error { return BackupHeader(background, s, io.Discard) },
		"repair": func() error {
			_, err := Repair(background, s, func(*FormatError) bool { return true }, func() error { return nil })
			return err
		},
		"restore elsewhere": func() error { return RestoreHeader(background, Attached(c.copy()), s, true) },
	} {
		look()
		if !bytes.Equal(s.Bytes(), before) {
			t.Errorf("%s has written something", name)
		}
	}
	if err := RestoreHeader(background, Attached(s), c.backup(), true); err != nil {
		t.Errorf("a good backup cannot be restored: %v", err)
	}
	opensWith(oldPassphrase, otherPassphrase)(t, c, s)
}
