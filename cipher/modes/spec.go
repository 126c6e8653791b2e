package modes

import (
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"serpcrypt/internal/hashes"
)

// Spec names a cipher, how it runs over a sector and where the sector's IV
// comes from, in dm-crypt's words and in lower case. IV is empty for ecb, and
// IVHash for every IV but essiv.
type Spec struct{ Cipher, Mode, IV, IVHash string }

// SpecError says why a specification, or a key for it, makes no sense.
type SpecError struct {
	Spec   string // as it was given
	Reason string
}

func (e *SpecError) Error() string {
	return fmt.Sprintf("modes: %q: %s", e.Spec, e.Reason)
}

type mode uint8

const (
	modeECB mode = iota
	modeCBC
	modeCTR
	modeLRW
	modeXTS
)

var modeNames = []string{modeECB: "ecb", modeCBC: "cbc", modeCTR: "ctr", modeLRW: "lrw", modeXTS: "xts"}

const (
	serpentName = "serpent"
	aesName     = "aes"
)

var cipherNames = []string{serpentName, aesName}

// maxCipherKeySize is the longest key in bytes of each cipher.
const maxCipherKeySize = 32

// keySizes are the volume key's sizes in bytes. XTS takes two cipher keys of
// equal size, LRW one and then the 16 bytes of its tweak key.
var keySizes = [][]int{
	modeECB: {16, 24, 32},
	modeCBC: {16, 24, 32},
	modeCTR: {16, 24, 32},
	modeLRW: {32, 40, 48},
	modeXTS: {32, 48, 64},
}

// ParseSpec takes apart what dm-crypt and LUKS write as cipher-mode-iv or
// cipher-mode-iv:hash: "serpent-xts-plain64", "serpent-cbc-essiv:sha256",
// "aes-ecb". Upper and lower case are the same. The error is a *SpecError.
func ParseSpec(s string) (Spec, error) {
	fail := func(format string, args ...any) (Spec, error) {
		return Spec{}, &SpecError{Spec: s, Reason: fmt.Sprintf(format, args...)}
	}
	lower := strings.ToLower(s)
	cipher, rest, hasMode := strings.Cut(lower, "-")
	mode, rest, hasIV := strings.Cut(rest, "-")
	iv, hashName, hasHash := strings.Cut(rest, ":")

	switch {
	case !slices.Contains(cipherNames, cipher):
		return fail("unknown cipher %q (known: %s)", cipher, list(cipherNames))
	case !hasMode:
		return fail("no mode (one of %s)", list(modeNames))
	case !slices.Contains(modeNames, mode):
		return fail("unknown mode %q (known: %s)", mode, list(modeNames))
	case mode == modeNames[modeECB] && hasIV:
		return fail("ecb takes no IV")
	case mode == modeNames[modeECB]:
		return Spec{Cipher: cipher, Mode: mode}, nil
	case !hasIV:
		return fail("%s needs an IV (one of %s)", mode, list(ivNames[ivNone+1:]))
	case !slices.Contains(ivNames[ivNone+1:], iv):
		return fail("unknown IV %q (known: %s)", iv, list(ivNames[ivNone+1:]))
	case iv != ivNames[ivESSIV] && hasHash:
		return fail("%s takes no hash", iv)
	case iv != ivNames[ivESSIV]:
		return Spec{Cipher: cipher, Mode: mode, IV: iv}, nil
	case hashName == "":
		return fail("essiv needs a hash, as in essiv:sha256")
	}
	newHash, err := essivHash(hashName)
	if err != nil {
		return fail("unknown hash %q (known: %s)", hashName, list(essivHashNames()))
	}
	n := newHash().Size()
	switch {
	case cipher == serpentName && n > maxCipherKeySize:
		return fail("essiv takes the digest as a key, and %s gives %d bytes; serpent has room for %d", hashName, n, maxCipherKeySize)
	case cipher == aesName && !slices.Contains(keySizes[modeECB], n):
		return fail("essiv takes the digest as a key, and %s gives %d bytes; aes has keys of 16, 24 or 32", hashName, n)
	}
	return Spec{Cipher: cipher, Mode: mode, IV: iv, IVHash: hashName}, nil
}

// kernelNames are the names in dm-crypt of hashes that LUKS calls otherwise.
var kernelNames = map[string]string{"ripemd160": "rmd160", "whirlpool": "wp512"}

func essivHashNames() []string {
	names := hashes.Names()
	for i, name := range names {
		if kernelName, ok := kernelNames[name]; ok {
			names[i] = kernelName
		}
	}
	return names
}

// essivHash returns the constructor of a hash that dm-crypt calls so.
func essivHash(name string) (func() hash.Hash, error) {
	i := slices.Index(essivHashNames(), name)
	if i < 0 {
		return nil, &hashes.UnknownError{Name: name}
	}
	return hashes.New(hashes.Names()[i])
}

func list(names []string) string { return strings.Join(names, ", ") }

// String returns the specification as ParseSpec reads it.
func (s Spec) String() string {
	text := s.Cipher + "-" + s.Mode
	if s.IV != "" {
		text += "-" + s.IV
	}
	if s.IVHash != "" {
		text += ":" + s.IVHash
	}
	return text
}

// KeySizes returns the sizes in bytes that the volume key may have, ascending;
// none if the mode is unknown.
func (s Spec) KeySizes() []int {
	m := slices.Index(modeNames, s.Mode)
	if m < 0 {
		return nil
	}
	return slices.Clone(keySizes[m])
}

// CheckKeySize returns a *SpecError if the volume key cannot have this many
// bytes.
func (s Spec) CheckKeySize(bytes int) error {
	sizes := s.KeySizes()
	if slices.Contains(sizes, bytes) {
		return nil
	}
	bits := make([]string, len(sizes))
	for i, n := range sizes {
		bits[i] = strconv.Itoa(8 * n)
	}
	return &SpecError{
		Spec:   s.String(),
		Reason: fmt.Sprintf("a key of %d bits does not fit (one of %s)", 8*bytes, strings.Join(bits, ", ")),
	}
}
