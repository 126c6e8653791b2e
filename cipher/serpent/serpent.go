// Package serpent implements the block cipher Serpent ("Serpent: A Proposal
// for the Advanced Encryption Standard", Anderson, Biham and Knudsen, 1998)
// for many blocks at a time.
//
// Blocks and keys are sequences of little-endian words, as in LUKS, in the
// Linux kernel and in the NESSIE test vectors. The vectors of the AES
// submission show the same bytes in reverse order.
//
// All code runs in constant time: no branch and no address depends on a key
// or on data.
package serpent

import (
	"crypto/cipher"
	"strconv"
)

//go:generate go run -C _asm .

// BlockSize is the size of a block in bytes.
const BlockSize = 16

// KeySizeError is the size in bytes of a key that is not of 16, 24 or 32.
type KeySizeError int

func (e KeySizeError) Error() string {
	return "serpent: key of " + strconv.Itoa(int(e)) + " bytes; it has 16, 24 or 32"
}

// Cipher is Serpent with one key. It contains no pointers, and so may lie in
// memory that the garbage collector does not know. Its methods may be called
// from several goroutines at once, except for Init and Wipe.
type Cipher struct {
	pairs  struct{ encrypt, decrypt pairKeys }
	vector vectorKeys // empty where the kernel is Generic
	kernel Kernel     // Auto before Init and after Wipe
}

var _ cipher.Block = (*Cipher)(nil)

// NewCipher returns a Cipher with the fastest kernel. The key has 16, 24 or 32
// bytes, else the error is a KeySizeError.
func NewCipher(key []byte) (*Cipher, error) {
	c := new(Cipher)
	if err := c.Init(key, Auto); err != nil {
		return nil, err
	}
	return c, nil
}

// Init gives c a key of 16, 24 or 32 bytes and a kernel. The error is a
// KeySizeError, or a *KernelError if this CPU or build lacks the kernel. After
// an error c is as after Wipe.
func (c *Cipher) Init(key []byte, k Kernel) error {
	c.Wipe()
	switch len(key) {
	case 16, 24, 32:
	default:
		return KeySizeError(len(key))
	}
	if k = k.Resolve(); !k.available() {
		return &KernelError{Name: k.String(), Known: k.known()}
	}
	c.expandKey(key, k)
	c.kernel = k
	return nil
}

// Kernel returns the kernel that c uses: never Auto, unless c has no key.
func (c *Cipher) Kernel() Kernel { return c.kernel }

// Wipe overwrites the key. Until the next Init all other methods but Kernel
// and BlockSize panic.
func (c *Cipher) Wipe() { wipe(c) }

// BlockSize returns BlockSize.
func (c *Cipher) BlockSize() int { return BlockSize }

// Encrypt encrypts the first block of src into dst. It panics if one of them
// is shorter than a block. dst and src overlap exactly or not at all.
func (c *Cipher) Encrypt(dst, src []byte) { c.single(dst, src, encrypting) }

// Decrypt decrypts the first block of src into dst. It panics if one of them
// is shorter than a block. dst and src overlap exactly or not at all.
func (c *Cipher) Decrypt(dst, src []byte) { c.single(dst, src, decrypting) }

func (c *Cipher) single(dst, src []byte, d direction) {
	if len(src) < BlockSize {
		panic("serpent: input not full block")
	}
	if len(dst) < BlockSize {
		panic("serpent: output not full block")
	}
	dst, src = dst[:BlockSize], src[:BlockSize]
	c.check(dst, src)
	c.blocksGeneric(dst, src, d)
}
