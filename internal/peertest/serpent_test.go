package peertest

import (
	"bytes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	peer "github.com/aead/serpent"
	"golang.org/x/crypto/xts"

	"serpcrypt/cipher/serpent"
)

const (
	maxBlocks = 130
	maxSize   = maxBlocks * serpent.BlockSize
)

// operation is what we and the peer do to one sector. The peer's outcome for a
// shorter sector is the beginning of that for a longer one.
type operation struct {
	name string
	ours func(c *serpent.Cipher, dst, src []byte)
	peer func(dst, src []byte)
}

// operations returns those of a key and an IV, and XTS of the sector of that
// number.
func operations(t *testing.T, key, tweakKey, iv []byte, number uint64) []operation {
	t.Helper()
	block, err := peer.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	x, err := xts.NewCipher(peer.NewCipher, append(bytes.Clone(key), tweakKey...))
	if err != nil {
		t.Fatal(err)
	}
	tweakBlock, err := peer.NewCipher(tweakKey)
	if err != nil {
		t.Fatal(err)
	}
	tweak := binary.LittleEndian.AppendUint64(nil, number)
	tweak = append(tweak, make([]byte, 8)...)
	tweakBlock.Encrypt(tweak, tweak)
	each := func(f func(dst, src []byte)) func(dst, src []byte) {
		return func(dst, src []byte) {
			for i := 0; i < len(src); i += serpent.BlockSize {
				f(dst[i:], src[i:])
			}
		}
	}
	return []operation{
		{"EncryptBlocks", (*serpent.Cipher).EncryptBlocks, each(block.Encrypt)},
		{"DecryptBlocks", (*serpent.Cipher).DecryptBlocks, each(block.Decrypt)},
		{"Encrypt", func(c *serpent.Cipher, dst, src []byte) { each(c.Encrypt)(dst, src) }, each(block.Encrypt)},
		{"Decrypt", func(c *serpent.Cipher, dst, src []byte) { each(c.Decrypt)(dst, src) }, each(block.Decrypt)},
		{"EncryptXTS", func(c *serpent.Cipher, dst, src []byte) { c.EncryptXTS(dst, src, tweak) },
			func(dst, src []byte) { x.Encrypt(dst, src, number) }},
		{"DecryptXTS", func(c *serpent.Cipher, dst, src []byte) { c.DecryptXTS(dst, src, tweak) },
			func(dst, src []byte) { x.Decrypt(dst, src, number) }},
		{"EncryptCBC", func(c *serpent.Cipher, dst, src []byte) { c.EncryptCBC(dst, src, iv) },
			func(dst, src []byte) { cipher.NewCBCEncrypter(block, iv).CryptBlocks(dst, src) }},
		{"DecryptCBC", func(c *serpent.Cipher, dst, src []byte) { c.DecryptCBC(dst, src, iv) },
			func(dst, src []byte) { cipher.NewCBCDecrypter(block, iv).CryptBlocks(dst, src) }},
		{"CryptCTR", func(c *serpent.Cipher, dst, src []byte) { c.CryptCTR(dst, src, iv) },
			func(dst, src []byte) { cipher.NewCTR(block, iv).XORKeyStream(dst, src) }},
	}
}

func TestSerpent(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	bytesOf := func(n int) []byte {
		b := make([]byte, n)
		random.Read(b)
		return b
	}
	for _, keySize := range []int{16, 24, 32} {
		for round := range 3 {
			key, tweakKey, iv, src := bytesOf(keySize), bytesOf(keySize), bytesOf(16), bytesOf(maxSize)
			if round == 2 {
				copy(iv, bytes.Repeat([]byte{0xff}, 15)) // the counter carries over
			}
			for _, o := range operations(t, key, tweakKey, iv, random.Uint64()) {
				want := make([]byte, maxSize)
				o.peer(want, src)
				for _, k := range serpent.Kernels() {
					t.Run(fmt.Sprintf("%d-byte key/%d/%s/%v", keySize, round, o.name, k), func(t *testing.T) {
						var c serpent.Cipher
						if err := c.Init(key, k); err != nil {
							t.Fatal(err)
						}
						compare(t, &c, o, src, want)
					})
				}
			}
		}
	}
}

// compare tries all lengths, places in memory that are not aligned, and in
// place.
func compare(t *testing.T, c *serpent.Cipher, o operation, src, want []byte) {
	buffer := make([]byte, maxSize+serpent.BlockSize)
	for blocks := range maxBlocks + 1 {
		n, offset := blocks*serpent.BlockSize, blocks%serpent.BlockSize
		got := buffer[offset:][:n]
		clear(got)
		o.ours(c, got, src[:n])
		if !bytes.Equal(got, want[:n]) {
			t.Fatalf("%d blocks: got %x, want %x", blocks, got, want[:n])
		}
		copy(got, src)
		o.ours(c, got, got)
		if !bytes.Equal(got, want[:n]) {
			t.Fatalf("%d blocks, in place: got %x, want %x", blocks, got, want[:n])
		}
	}
}
