package serpent

import (
	"bytes"
	"fmt"
	"strings"
)

// knownAnswer is a test vector with plaintext 00112233445566778899aabbccddeeff
// and a key that counts up from 0.
type knownAnswer struct {
	keyBytes   int
	ciphertext string
}

// knownAnswers are vector 0 of set 4 in the NESSIE test vectors of Serpent
// (Serpent-128-128.verified.test-vectors, and likewise for 192 and 256).
var knownAnswers = [...]knownAnswer{
	{16, "\x56\x3e\x2c\xf8\x74\x0a\x27\xc1\x64\x80\x45\x60\x39\x1e\x9b\x27"},
	{24, "\x6a\xb8\x16\xc8\x2d\xe5\x3b\x93\x00\x50\x08\xaf\xa2\x24\x6a\x02"},
	{32, "\x28\x68\xb7\xa2\xd2\x8e\xcd\x5e\x4f\xde\xfa\xc3\xc4\x33\x00\x74"},
}

// SelfTest checks kernel k in well under a millisecond: known answers for
// single blocks, and each operation over many blocks against the same done
// block by block. The error is a *KernelError if CPU or build lack the kernel.
func SelfTest(k Kernel) error {
	var c Cipher
	defer c.Wipe()
	for _, v := range knownAnswers {
		if err := c.Init(countUp(v.keyBytes, 1), k); err != nil {
			return err
		}
		if err := c.testKnownAnswer(v.ciphertext); err != nil {
			return err
		}
	}
	for _, size := range []struct{ sectors, blocks int }{{1, selfTestBlocks}, {selfTestBlocks, 2}} {
		if err := c.testOperations(size.sectors, size.blocks); err != nil {
			return err
		}
	}
	return nil
}

// selfTestRuns are lengths in blocks for which kernels take passes of each size.
var selfTestRuns = [...]int{1, 2, 4, 8, selfTestBlocks, 32, 48, 64, 96}

// selfTestBlocks is a length of which kernels leave some over.
const selfTestBlocks = 29

// testKnownAnswer checks single blocks and, since a vector kernel has its own
// code, many.
func (c *Cipher) testKnownAnswer(ciphertext string) error {
	plaintext := countUp(BlockSize, 0x11)
	one := make([]byte, BlockSize)
	if c.Encrypt(one, plaintext); string(one) != ciphertext {
		return c.selfTestError("Encrypt")
	}
	if c.Decrypt(one, one); !bytes.Equal(one, plaintext) {
		return c.selfTestError("Decrypt")
	}
	for _, n := range selfTestRuns {
		many := bytes.Repeat(plaintext, n)
		if c.EncryptBlocks(many, many); string(many) != strings.Repeat(ciphertext, n) {
			return c.selfTestError("EncryptBlocks")
		}
		if c.DecryptBlocks(many, many); !bytes.Equal(many, bytes.Repeat(plaintext, n)) {
			return c.selfTestError("DecryptBlocks")
		}
	}
	return nil
}

// testOperations checks each block that the operations on sectors give against
// its definition by single blocks.
func (c *Cipher) testOperations(sectors, blocks int) error {
	src := countUp(sectors*blocks*BlockSize, 7)
	tweaks := countUp(len(src), 29)
	ivs := bytes.Repeat([]byte{0xff}, sectors*BlockSize) // so that counters carry over
	copy(ivs, countUp(len(ivs)/2, 179))
	dst := make([]byte, len(src))

	encrypt := func(x block) block { return c.lone(x, encrypting) }
	decrypt := func(x block) block { return c.lone(x, decrypting) }
	at := func(b []byte, i int) block { return loadBlock(b[i*BlockSize:]) }
	tweak := func(i int) block {
		t := at(ivs, i/blocks)
		for range i % blocks {
			t = t.double()
		}
		return t
	}
	count := func(i int) block {
		n := at(ivs, i/blocks).counter()
		for range i % blocks {
			n = n.next()
		}
		return n.block()
	}
	previous := func(b []byte, i int) block {
		if i%blocks == 0 {
			return at(ivs, i/blocks)
		}
		return at(b, i-1)
	}
	for _, op := range []struct {
		name string
		run  func(dst, src, ivs []byte)
		ivs  []byte
		want func(i int) block
	}{
		{"EncryptXEX", c.EncryptXEX, tweaks, func(i int) block { return encrypt(at(src, i).xor(at(tweaks, i))).xor(at(tweaks, i)) }},
		{"DecryptXEX", c.DecryptXEX, tweaks, func(i int) block { return decrypt(at(src, i).xor(at(tweaks, i))).xor(at(tweaks, i)) }},
		{"EncryptXTS", c.EncryptXTS, ivs, func(i int) block { return encrypt(at(src, i).xor(tweak(i))).xor(tweak(i)) }},
		{"DecryptXTS", c.DecryptXTS, ivs, func(i int) block { return decrypt(at(src, i).xor(tweak(i))).xor(tweak(i)) }},
		{"EncryptCBC", c.EncryptCBC, ivs, func(i int) block { return encrypt(at(src, i).xor(previous(dst, i))) }},
		{"DecryptCBC", c.DecryptCBC, ivs, func(i int) block { return decrypt(at(src, i)).xor(previous(src, i)) }},
		{"CryptCTR", c.CryptCTR, ivs, func(i int) block { return encrypt(count(i)).xor(at(src, i)) }},
	} {
		op.run(dst, src, op.ivs)
		for i := range len(src) / BlockSize {
			if at(dst, i) != op.want(i) {
				return c.selfTestError(op.name)
			}
		}
	}
	return nil
}

func (c *Cipher) selfTestError(operation string) error {
	return fmt.Errorf("serpent: self test of Serpent kernel %v: %s gives a wrong result", c.kernel, operation)
}

// countUp returns n bytes 0, step, 2 step, ...
func countUp(n int, step byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) * step
	}
	return b
}
