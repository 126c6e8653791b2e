// Package af is the anti-forensic information splitter of LUKS: it blows a
// key up to many stripes, all of which are needed to get it back, so that
// overwriting any small part of them destroys the key.
//
// Source: LUKS1 On-Disk Format Specification 1.2.3, section 2.4, after
// C. Fruhwirth, "New Methods in Hard Disk Encryption", 2005.
package af

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"hash"

	"serpcrypt/internal/hashes"
	"serpcrypt/internal/secret"
)

// Split fills dst with stripes stripes of len(key) bytes each: all but the
// last are random, and the last one makes Merge give key. dst and key do not
// overlap. The error is a *SizeError or that of an unknown hash.
func Split(dst, key []byte, stripes int, hash string) error {
	if err := checkSizes(dst, key, stripes); err != nil {
		return err
	}
	last := dst[len(dst)-len(key):]
	random := dst[:len(dst)-len(key)]
	rand.Read(random)
	return diffuseAll(last, random, key, hash)
}

// Merge fills key from material, which is stripes stripes of len(key) bytes
// each. The two do not overlap. Any material gives some key. The error is a
// *SizeError or that of an unknown hash.
func Merge(key, material []byte, stripes int, hash string) error {
	if err := checkSizes(material, key, stripes); err != nil {
		return err
	}
	last := material[len(material)-len(key):]
	return diffuseAll(key, material[:len(material)-len(key)], last, hash)
}

// SizeError says that material and key do not fit together.
type SizeError struct{ Material, Key, Stripes int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("af: %d bytes are not %d stripes of a key of %d bytes", e.Material, e.Stripes, e.Key)
}

func checkSizes(material, key []byte, stripes int) error {
	if stripes < 1 || len(key) == 0 || len(material)%stripes != 0 || len(material)/stripes != len(key) {
		return &SizeError{len(material), len(key), stripes}
	}
	return nil
}

// diffuseAll runs the stripes through the chain d = H(d xor stripe), which
// begins with zeros, and sets dst to its end xor with.
func diffuseAll(dst, stripes, with []byte, hashName string) error {
	newHash, err := hashes.New(hashName)
	if err != nil {
		return fmt.Errorf("af: %w", err)
	}
	h := newHash()
	defer hashes.Wipe(h)
	size := len(dst)
	buffer, err := secret.New(size + h.Size())
	if err != nil {
		return fmt.Errorf("af: %w", err)
	}
	defer buffer.Close()
	d, digest := buffer.Bytes()[:size], buffer.Bytes()[size:]
	for ; len(stripes) > 0; stripes = stripes[size:] {
		subtle.XORBytes(d, d, stripes[:size])
		diffuse(h, d, digest)
	}
	subtle.XORBytes(dst, d, with)
	return nil
}

// diffuse replaces each digest-sized block of d by the hash of its number and
// itself; the last block may be shorter. digest is room for one digest.
func diffuse(h hash.Hash, d, digest []byte) {
	var number [4]byte
	for i := uint32(0); len(d) > 0; i++ {
		block := d[:min(len(d), h.Size())]
		binary.BigEndian.PutUint32(number[:], i)
		h.Reset()
		h.Write(number[:])
		h.Write(block)
		h.Sum(digest[:0])
		copy(block, digest)
		d = d[len(block):]
	}
}
