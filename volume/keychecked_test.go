package volume

import "testing"

// TestKeyChecked: a key that is said to have been checked is not checked again,
// but for its length.
func TestKeyChecked(t *testing.T) {
	s := format(t, quick, 512)
	key, err := Unlock(background, s, passphrase, AnySlot)
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	right := key.Bytes.Bytes()
	other := make([]byte, len(right))
	copy(other, right)
	other[0] ^= 1
	for _, k := range [][]byte{right, other} {
		v, err := Open(s, k, Options{KeyChecked: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, k := range [][]byte{nil, right[:len(right)-1], append(other, 0)} {
		if v, err := Open(s, k, Options{KeyChecked: true}); err == nil {
			v.Close()
			t.Errorf("a key of %d bytes is taken", len(k))
		}
	}
}
