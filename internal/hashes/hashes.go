// Package hashes finds hash functions by the names that container headers
// and cipher specifications use. ripemd160 and whirlpool are there for old
// containers.
package hashes

import (
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"strings"

	//lint:ignore SA1019 old containers have it
	"golang.org/x/crypto/ripemd160"

	"serpcrypt/hash/sha1"
	"serpcrypt/internal/whirlpool"
)

var known = []struct {
	name string
	new  func() hash.Hash
}{
	{"sha1", sha1.New},
	{"ripemd160", ripemd160.New},
	{"sha224", sha256.New224},
	{"sha256", sha256.New},
	{"sha384", sha512.New384},
	{"sha512", sha512.New},
	{"whirlpool", whirlpool.New},
}

// UnknownError is the name of a hash that this package does not have.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("hashes: unknown hash %q (known: %s)", e.Name, strings.Join(Names(), ", "))
}

// New returns the constructor of the named hash. Upper and lower case are the
// same. The error is an *UnknownError.
func New(name string) (func() hash.Hash, error) {
	lower := strings.ToLower(name)
	for _, k := range known {
		if k.name == lower {
			return k.new, nil
		}
	}
	return nil, &UnknownError{Name: name}
}

// Names returns the names of all hashes, the shortest digest first.
func Names() []string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	return names
}

// Wipe overwrites what h remembers of its input: the chaining value and the
// buffer that holds the last block. Afterwards h has taken in a block of
// zeros; Reset makes it usable again.
func Wipe(h hash.Hash) {
	var zeros [sha512.BlockSize]byte
	n := h.BlockSize()
	// Whole blocks go past the buffer, so the block comes in two parts.
	h.Reset()
	h.Write(zeros[:n-1])
	h.Write(zeros[:1])
}
