package modes

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"serpcrypt/cipher/serpent"
)

func newSectors(t testing.TB, spec string, key []byte, sectorSize int, kernel serpent.Kernel) *Sectors {
	t.Helper()
	s, err := New(spec, key, sectorSize, kernel)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Wipe)
	return s
}

func keySizesOf(t testing.TB, spec string) []int {
	t.Helper()
	parsed, err := ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.KeySizes()
}

// randomBytes returns the same bytes for the same seed.
func randomBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed))).Read(b)
	return b
}

// checkEqual reports the first block that differs.
func checkEqual(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d bytes, want %d", what, len(got), len(want))
		return
	}
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for got[i] == want[i] {
		i++
	}
	i &^= 15
	t.Errorf("%s: differs at byte %d: got %x, want %x", what, i, got[i:i+16], want[i:i+16])
}

// newBlock returns the bare cipher of a specification.
func newBlock(spec string) func(key []byte) (cipher.Block, error) {
	if strings.HasPrefix(spec, "aes-") {
		return aes.NewCipher
	}
	return func(key []byte) (cipher.Block, error) { return serpent.NewCipher(key) }
}

func specsOf(cipher string) (specs []string) {
	for _, mode := range []string{
		"ecb",
		"cbc-plain64", "cbc-essiv:sha256",
		"ctr-plain64", "ctr-essiv:sha256",
		"lrw-benbi", "lrw-essiv:sha256",
		"xts-plain64", "xts-essiv:sha256",
	} {
		specs = append(specs, cipher+"-"+mode)
	}
	return specs
}

// kernelsOf returns the kernels that the cipher of spec can run with.
func kernelsOf(spec string) []serpent.Kernel {
	if !strings.HasPrefix(spec, "serpent-") {
		return []serpent.Kernel{serpent.Auto}
	}
	return serpent.Kernels()
}

func longestKey(t testing.TB, spec string) []byte {
	sizes := keySizesOf(t, spec)
	return randomBytes(3, sizes[len(sizes)-1])
}
