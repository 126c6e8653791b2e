//go:build !s390x

package modes

import (
	"bytes"
	"slices"
	"testing"

	"serpcrypt/cipher/serpent"
)

// TestWipeAES looks at the round keys that lie in ordinary memory. On s390x
// crypto/aes has them behind a pointer, and out of reach.
func TestWipeAES(t *testing.T) {
	s, err := New("aes-xts-essiv:sha256", randomBytes(1, 64), 512, serpent.Auto)
	if err != nil {
		t.Fatal(err)
	}
	memory := blockMemory(s)
	if len(memory) != 3 {
		t.Errorf("%d ciphers, want 3", len(memory))
	}
	for what, m := range memory {
		if set := len(m) - bytes.Count(m, []byte{0}); set < 32 {
			t.Errorf("%s: %d bytes of keys before Wipe, want at least 32", what, set)
		}
	}
	s.Wipe()
	for what, m := range memory {
		if slices.Max(m) != 0 {
			t.Errorf("%s: Wipe has left %d bytes", what, len(m)-bytes.Count(m, []byte{0}))
		}
	}
}
