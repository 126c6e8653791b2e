package volume

import (
	"bytes"
	"testing"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
)

// A volume without a header is the store from its first byte to its last whole
// sector, under the cipher that was given.
func TestBare(t *testing.T) {
	s := newStore(10*4096 + 512)
	key := bytes.Repeat([]byte{7, 9}, 32)
	cipher, err := modes.New("serpent-xts-plain64", key, 4096, serpent.Auto)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewBare(s, cipher, 4096)
	if err != nil || v.Size() != 10*4096 {
		t.Fatalf("%v, size %d", err, v.Size())
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), 256)
	if _, err := v.WriteAt(want, 3*4096); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4096)
	if err := readFull(s, got, 3*4096); err != nil {
		t.Fatal(err)
	}
	cipher.Decrypt(got, got, 3*8)
	if !bytes.Equal(got, want) {
		t.Error("sector 3 is not where it should be, or under another cipher")
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}
