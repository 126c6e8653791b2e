package modes

import (
	"bytes"
	"crypto/cipher"
	"crypto/sha1"
	"crypto/sha256"
	"math/big"
	"strings"
	"testing"

	//lint:ignore SA1019 old containers have it
	"golang.org/x/crypto/ripemd160"
)

// A reference is the same as a Sectors, one block at a time and spelled out
// from the definitions, with big numbers for fields and counters.
type reference struct {
	mode, iv    string
	data, tweak cipher.Block // tweak: xts
	essiv       cipher.Block
	lrwKey      *big.Int
}

func newReference(t testing.TB, spec string, key []byte) *reference {
	parts := append(strings.SplitN(spec, "-", 3), "")
	r := &reference{mode: parts[1], iv: parts[2]}
	block := func(key []byte) cipher.Block {
		c, err := newBlock(spec)(key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	iv, hashName, _ := strings.Cut(r.iv, ":")
	r.iv = iv
	pad := func(digest []byte) []byte { return append(append(digest, 1), make([]byte, 31-len(digest))...) }
	switch hashName {
	case "rmd160":
		h := ripemd160.New()
		h.Write(key)
		r.essiv = block(pad(h.Sum(nil)))
	case "sha1":
		digest := sha1.Sum(key)
		r.essiv = block(pad(digest[:]))
	case "sha224":
		digest := sha256.Sum224(key)
		r.essiv = block(pad(digest[:]))
	case "sha256":
		digest := sha256.Sum256(key)
		r.essiv = block(digest[:])
	}
	switch r.mode {
	case "xts":
		r.tweak = block(key[len(key)/2:])
		key = key[:len(key)/2]
	case "lrw":
		r.lrwKey = new(big.Int).SetBytes(key[len(key)-16:])
		key = key[:len(key)-16]
	}
	r.data = block(key)
	return r
}

// sectorIV writes the number byte by byte.
func (r *reference) sectorIV(n uint64) []byte {
	iv := make([]byte, 16)
	little := func(n uint64, size int) {
		for i := range size {
			iv[i] = byte(n >> (8 * i))
		}
	}
	big := func(n uint64) {
		for i := range 8 {
			iv[15-i] = byte(n >> (8 * i))
		}
	}
	switch r.iv {
	case "plain":
		little(n%(1<<32), 4)
	case "plain64":
		little(n, 8)
	case "plain64be":
		big(n)
	case "benbi":
		if r.mode == "ctr" {
			big(n*512 + 1)
		} else {
			big(n*32 + 1)
		}
	case "essiv":
		little(n, 8)
		r.essiv.Encrypt(iv, iv)
	}
	return iv
}

var twoTo128 = new(big.Int).Lsh(big.NewInt(1), 128)

// reduce subtracts x^128 + x^7 + x^2 + x + 1 from an x of degree 128 or less.
func reduce(x *big.Int) {
	if x.Bit(128) == 1 {
		x.Xor(x, twoTo128)
		x.Xor(x, big.NewInt(0x87))
	}
}

// multiply returns the product of a and b in GF(2^128).
func multiply(a, b *big.Int) *big.Int {
	product, shifted := new(big.Int), new(big.Int).Set(b)
	for i := range a.BitLen() {
		if a.Bit(i) == 1 {
			product.Xor(product, shifted)
		}
		shifted.Lsh(shifted, 1)
		reduce(shifted)
	}
	return product
}

func reversed(b []byte) []byte {
	r := make([]byte, len(b))
	for i := range b {
		r[len(b)-1-i] = b[i]
	}
	return r
}

func xor(dst, a, b []byte) {
	for i := range dst {
		dst[i] = a[i] ^ b[i]
	}
}

// encrypt encrypts p, whole sectors, in place.
func (r *reference) encrypt(p []byte, sectorSize int, first uint64) {
	for n := first; len(p) > 0; n += uint64(sectorSize / 512) {
		r.encryptSector(p[:sectorSize], r.sectorIV(n))
		p = p[sectorSize:]
	}
}

func (r *reference) encryptSector(sector, iv []byte) {
	tweaks := r.tweaks(iv, len(sector)/16)
	counter := new(big.Int).SetBytes(iv)
	keystream := make([]byte, 16)
	for i := 0; i < len(sector); i += 16 {
		b := sector[i : i+16]
		switch r.mode {
		case "ecb":
			r.data.Encrypt(b, b)
		case "cbc":
			xor(b, b, iv)
			r.data.Encrypt(b, b)
			iv = b
		case "ctr":
			r.data.Encrypt(keystream, counter.FillBytes(keystream))
			xor(b, b, keystream)
			increment(counter)
		case "lrw", "xts":
			xor(b, b, tweaks[i/16])
			r.data.Encrypt(b, b)
			xor(b, b, tweaks[i/16])
		}
	}
}

// tweaks returns what lrw and xts add to each block of a sector.
func (r *reference) tweaks(iv []byte, blocks int) (tweaks [][]byte) {
	tweak := make([]byte, 16)
	switch r.mode {
	case "lrw":
		number := new(big.Int).SetBytes(iv)
		for range blocks {
			tweaks = append(tweaks, bytes.Clone(multiply(number, r.lrwKey).FillBytes(tweak)))
			increment(number)
		}
	case "xts":
		r.tweak.Encrypt(tweak, iv)
		x := new(big.Int).SetBytes(reversed(tweak))
		for range blocks {
			tweaks = append(tweaks, reversed(x.FillBytes(tweak)))
			x.Lsh(x, 1)
			reduce(x)
		}
	}
	return tweaks
}

func increment(n *big.Int) {
	if n.Add(n, big.NewInt(1)).Cmp(twoTo128) == 0 {
		n.SetInt64(0)
	}
}
