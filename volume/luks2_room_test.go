package volume

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks2"
)

// refusedFor checks that err is a *FormatError about the field, and that the disk
// is as it was.
func refusedFor(t *testing.T, what string, err error, field string, s *faultstore.Store, before []byte) {
	t.Helper()
	var fault *FormatError
	if !errors.As(err, &fault) || fault.Field != field {
		t.Errorf("%s: %v, want a fault of %s", what, err, field)
	}
	if !bytes.Equal(s.Bytes(), before) {
		t.Errorf("%s: something was written", what)
	}
}

// TestNoRoomInTheText: a header whose text is full gets no other key, and what is
// found too late would be material in its place.
func TestNoRoomInTheText(t *testing.T) {
	room := 0
	full := func(h *luks2.Header) {
		token := &luks2.Token{Type: "long", Unknown: []luks2.Member{{Name: "x", Value: []byte(`""`)}}}
		h.Tokens[0] = token
		b, err := h.MarshalCopy(0, [luks2.SaltSize]byte{})
		if err != nil {
			t.Fatal(err)
		}
		room = len(b) - len(bytes.TrimRight(b, "\x00"))
		const left = 200 // bytes: less than a key slot takes, more than a label
		token.Unknown[0].Value = fmt.Appendf(nil, `"%s"`, strings.Repeat("x", room-left))
	}
	s := luks2Edited(t, full)
	if room < 1000 {
		t.Fatalf("the text has room for only %d bytes", room)
	}
	key := keyOf(t, s, oldPassphrase)
	before := s.Bytes()
	_, err := AddKey(background, s, key, newPassphrase, AnySlot, quickKey)
	refusedFor(t, "add", err, "json", s, before)
	// What takes no more room than there is works still.
	if _, err := ChangeKey(background, s, key, newPassphrase, quickKey); err != nil {
		t.Errorf("change: %v", err)
	}
	if err := RemoveKey(background, s, 1, false); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := AddKey(background, s, key, oldPassphrase, AnySlot, quickKey); err != nil {
		t.Errorf("add in the room of another: %v", err)
	}
}

// TestLastSequenceNumber: a header that counts no further is changed by nothing.
func TestLastSequenceNumber(t *testing.T) {
	last := func(h *luks2.Header) { h.SeqID = math.MaxUint64 - 1 }
	tried := 0
	for _, u := range updates {
		c := subjects(t)[1]
		s := c.copy()
		if u.prepare != nil {
			u.prepare(t, c, s)
		}
		found, err := luks2.Read(s, math.MaxInt64)
		if err != nil {
			continue // it is to be restored where none is left
		}
		last(found.Header)
		if err := found.Header.Save(s); err != nil {
			t.Fatal(err)
		}
		if u.name == "repair" {
			flip(s, 5000)
		}
		before := s.Bytes()
		refusedFor(t, u.name, u.run(s, c), "seqid", s, before)
		tried++
	}
	if tried < 10 {
		t.Errorf("only %d updates were tried", tried)
	}
	backup := luks2Edited(t, last)
	for name, s := range map[string]*faultstore.Store{
		"over another volume": format(t, quick2, 512), "over nothing": newStore(2 << 20),
	} {
		before := s.Bytes()
		refusedFor(t, name, RestoreHeader(background, Attached(s), backup, true), "seqid", s, before)
	}
}
