package luks2

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks"
)

// exampleHeader returns a valid header with a key slot, a token, and members that
// this package does not know, and the size of a container that it fits.
func exampleHeader(t testing.TB) (*Header, int64) {
	t.Helper()
	h, err := New(Params{Spec: "serpent-xts-plain64", KeyBytes: 64, SectorSize: 4096, Label: "Größe", Subsystem: "tests", StoreSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	salt := bytes.Repeat([]byte{0xA5}, 32)
	h.Keyslots[0] = &Keyslot{
		Type:    KeyslotLUKS2,
		KeySize: 64,
		AF:      AF{Type: AFLUKS1, Stripes: 4000, Hash: "sha1"},
		Area:    Area{Type: AreaRaw, Offset: 32768, Size: 258048, Encryption: "serpent-xts-plain64", KeySize: 64},
		KDF:     KDF{Type: KDFPBKDF2, Salt: salt, Hash: "sha1", Iterations: 1000},
	}
	h.Digests[0] = &Digest{Type: DigestPBKDF2, Keyslots: []int{0}, Segments: []int{0}, Hash: "sha256", Iterations: 1000, Salt: salt, Digest: salt}
	h.Tokens[7] = &Token{Type: "nobody-knows", Keyslots: []int{0}, Unknown: []Member{{"secret", json.RawMessage(`{"b":[1e400,-0.50,null],"a":"\u00e9\/<"}`)}}}
	h.Unknown = []Member{{"zz", json.RawMessage("123456789012345678901234567890")}, {"aa", json.RawMessage(" [ ]")[1:]}}
	size := h.Segments[0].Offset + 1<<20
	if faults := h.Faults(size, size); len(faults) != 0 {
		t.Fatalf("the header has faults: %v", faults)
	}
	return h, size
}

// container returns a disk with the header, saved once.
func container(t testing.TB, h *Header, size int64) *faultstore.Store {
	t.Helper()
	s := faultstore.New(make([]byte, size))
	if err := h.Save(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// withJSON returns a container of the header with another JSON text in both copies,
// whose checksums are right.
func withJSON(t testing.TB, h *Header, size int64, text []byte) []byte {
	t.Helper()
	b := container(t, h, size).Bytes()
	for _, offset := range []int64{0, h.Size} {
		area := b[offset+HeaderSize : offset+h.Size]
		clear(area)
		copy(area, text)
		sumUp(t, b, offset, h.Size)
	}
	return b
}

// newOfSize returns a header without key slots whose copies have size bytes.
func newOfSize(t testing.TB, size int64) *Header {
	t.Helper()
	h, err := New(Params{Spec: "serpent-xts-plain64", KeyBytes: 64, SectorSize: 512})
	if err != nil {
		t.Fatal(err)
	}
	h.Size, h.Config.JSONSize, h.Config.KeyslotsSize = size, size-HeaderSize, h.Segments[0].Offset-2*size
	return h
}

// sumUp makes the checksum of a copy right.
func sumUp(t testing.TB, b []byte, offset, size int64) {
	t.Helper()
	sum, fault := checksum(b[offset:offset+size], "sha256")
	if fault != nil {
		t.Fatal(fault)
	}
	copy(b[offset+offChecksum:], sum[:])
}

// edited returns the header's JSON text with one piece replaced, which it has to
// have once.
func edited(t testing.TB, h *Header, from, to string) []byte {
	t.Helper()
	text := string(writeJSON(&h.Metadata))
	if n := strings.Count(text, from); n != 1 {
		t.Fatalf("%d times %s in %s", n, from, text)
	}
	return []byte(strings.Replace(text, from, to, 1))
}

func read(t testing.TB, b []byte) *Found {
	t.Helper()
	found, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// wantFault checks that err is a *luks.FieldError of that field, slot and offset, with
// reason as a part of its reason. An offset of -1 is any.
func wantFault(t *testing.T, err error, field string, slot int, offset int64, reason string) {
	t.Helper()
	var fault *luks.FieldError
	if !errors.As(err, &fault) {
		t.Fatalf("got %v, want a luks.FieldError", err)
	}
	if fault.Field != field || fault.Slot != slot || offset >= 0 && fault.Offset != offset || !strings.Contains(fault.Reason, reason) {
		t.Errorf("got %#v, want field %s, slot %d, byte %d with %q", fault, field, slot, offset, reason)
	}
}
