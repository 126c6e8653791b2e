package sha1

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// SelfTest hashes known messages with kernel k, in a few microseconds. The error
// is a *KernelError if CPU or build lack the kernel.
func SelfTest(k Kernel) error {
	if err := k.check(); err != nil {
		return err
	}
	for _, known := range []struct{ message, sum string }{
		// FIPS 180-4 examples of one and of two blocks, and RFC 6234, section
		// 8.4, test 4 of SHA-1: 640 bytes.
		{"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
		{strings.Repeat("01234567", 80), "dea356a2cddd90c7a7ecedc5ebb563934f460452"},
	} {
		var digest [Size]byte
		sumKernel(k.Resolve(), &digest, []byte(known.message))
		if got := hex.EncodeToString(digest[:]); got != known.sum {
			return fmt.Errorf("sha1: self test of SHA-1 kernel %v: digest of %q is %s, want %s", k.Resolve(), known.message, got, known.sum)
		}
	}
	return nil
}
