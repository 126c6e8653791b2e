package af

import (
	"bytes"
	"errors"
	"testing"

	"serpcrypt/internal/hashes"
)

// FuzzMerge merges any material, and splits the key that comes out of it: that
// gives the key again. Sizes that do not fit are an error.
func FuzzMerge(f *testing.F) {
	for i, v := range mergeVectors {
		f.Add(bytes.Repeat([]byte{byte(i)}, 3*v.keySize), v.keySize, 3, uint8(i))
	}
	f.Add(make([]byte, 4000), 1, 4000, uint8(0))
	f.Add([]byte{}, 0, 0, uint8(0))
	f.Fuzz(func(t *testing.T, material []byte, keySize, stripes int, hashNumber uint8) {
		names := hashes.Names()
		hash := names[int(hashNumber)%len(names)]
		const largest = 256 // bytes of a key
		if keySize < 0 || keySize > largest {
			keySize = largest
		}
		fits := keySize > 0 && stripes > 0 && len(material)/keySize == stripes && len(material)%keySize == 0
		before := bytes.Clone(material)
		key := make([]byte, keySize)
		err := Merge(key, material, stripes, hash)
		if !bytes.Equal(material, before) {
			t.Fatal("the material was changed")
		}
		if !fits {
			var size *SizeError
			if !errors.As(err, &size) || !bytes.Equal(key, make([]byte, keySize)) {
				t.Fatalf("got %v and key %x, want a SizeError and no key", err, key)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := Split(material, key, stripes, hash); err != nil {
			t.Fatal(err)
		}
		again := make([]byte, keySize)
		if err := Merge(again, material, stripes, hash); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, key) {
			t.Fatalf("%s, %d stripes: got %x, want %x", hash, stripes, again, key)
		}
	})
}
