// Package kdf derives keys from passphrases.
package kdf

import (
	"fmt"
	"hash"
	"math"

	"golang.org/x/crypto/pbkdf2"

	"serpcrypt/internal/hashes"
	"serpcrypt/internal/secret"
)

const (
	// MinIterations is the least that Calibrate answers (RFC 8018, section 4.2,
	// recommends at least 1000).
	MinIterations = 1000
	// MaxIterations is the most that fits the 32-bit field of a LUKS header,
	// and an int.
	MaxIterations = min(math.MaxUint32, math.MaxInt)
)

// PBKDF2 derives keyLen bytes by PBKDF2-HMAC (RFC 8018, section 5.2) with the
// named hash. It returns an *hashes.UnknownError for a name it does not know,
// and an error for iterations outside 1 to MaxIterations or keyLen below 1.
//
// Each hash length of output begun costs all the iterations again.
//
// On the way, the password and HMAC's states lie in ordinary memory, which is
// not wiped: the process that derives a key should end soon after.
func PBKDF2(hash string, password, salt []byte, iterations, keyLen int) (*secret.Buffer, error) {
	newHash, err := hashes.New(hash)
	if err != nil {
		return nil, fmt.Errorf("kdf: %w", err)
	}
	if iterations < 1 || iterations > MaxIterations {
		return nil, fmt.Errorf("kdf: %d iterations (allowed: 1 to %d)", iterations, MaxIterations)
	}
	if keyLen < 1 {
		return nil, fmt.Errorf("kdf: key of %d bytes", keyLen)
	}
	return derive(newHash, password, salt, iterations, keyLen), nil
}

func derive(newHash func() hash.Hash, password, salt []byte, iterations, keyLen int) *secret.Buffer {
	derived := pbkdf2.Key(password, salt, iterations, keyLen, newHash)
	// The rest of the last block lies beyond the key's end.
	defer secret.Wipe(derived[:cap(derived)])
	key := secret.New(keyLen)
	copy(key.Bytes(), derived)
	return key
}
