// Package modes encrypts and decrypts runs of disk sectors, as the
// specification of a container says: "serpent-xts-plain64",
// "serpent-cbc-essiv:sha256" and so on. Everything is as in Linux dm-crypt
// (drivers/md/dm-crypt.c), including combinations that are there for old
// containers and are no good choice for a new one.
//
// Each sector is encrypted on its own, under an IV that comes from its number:
//
//   - xts: IEEE 1619. The volume key is the data key and then the tweak key; it
//     may also be twice the same, as some old containers have it.
//   - cbc: chained inside a sector.
//   - ctr: the IV is the first counter block, counted up as one big-endian
//     number of 128 bits.
//   - lrw: IEEE P1619 draft. The volume key is the cipher key and then 16 bytes
//     of tweak key. The IV is the number of the first block, in 128 bits
//     big-endian, which any IV can serve as and benbi is made for.
//   - ecb: no IV.
//
// Sector numbers count 512 bytes whatever the sector size, so that consecutive
// sectors of 4096 bytes are 8 apart, and wrap around at 2^64. The IV, 16 bytes,
// for sector number n:
//
//   - null: zeros.
//   - plain: n modulo 2^32, little-endian.
//   - plain64: n, little-endian.
//   - plain64be: n, big-endian in the last 8 bytes.
//   - benbi: 32n + 1, big-endian in the last 8 bytes: the number of the first
//     cipher block, from 1. With ctr it is 512n + 1, since dm-crypt multiplies
//     by the mode's blocks in 512 bytes, and there a block is a byte.
//   - essiv:HASH: as plain64, then encrypted under the hash of the whole volume
//     key (for xts and lrw too). A digest of less than 32 bytes is a short key,
//     which Serpent pads itself.
package modes

import (
	"fmt"
	"slices"
	"unsafe"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/hashes"
	"serpcrypt/internal/secret"
)

// Sizes of a sector in bytes: the powers of two in this range.
const (
	MinSectorSize = 512
	MaxSectorSize = 4096
)

// SectorSizeError is a size in bytes that sectors cannot have.
type SectorSizeError int

func (e SectorSizeError) Error() string {
	return fmt.Sprintf("modes: sectors of %d bytes (must be a power of two from %d to %d)", int(e), MinSectorSize, MaxSectorSize)
}

// Sectors encrypts and decrypts sectors of one size under one key. Its methods
// but Wipe may be called concurrently, and allocate nothing.
type Sectors struct {
	mode       mode
	iv         ivKind
	sectorSize int
	kernel     serpent.Kernel
	keys       *keys
	freeKeys   func()
}

// keys live in locked memory; what the mode and the IV do not need stays zero.
type keys struct {
	data  serpent.Cipher
	tweak serpent.Cipher // XTS
	essiv serpent.Cipher
	lrw   lrwTable
}

// New returns the sector cipher that spec describes, under a copy of the volume
// key. It is to be wiped after use. The error is a *SpecError for a wrong
// specification or key size, and a SectorSizeError.
func New(spec string, key []byte, sectorSize int, kernel serpent.Kernel) (*Sectors, error) {
	parsed, err := ParseSpec(spec)
	if err != nil {
		return nil, err
	}
	if err := parsed.CheckKeySize(len(key)); err != nil {
		return nil, err
	}
	if sectorSize < MinSectorSize || sectorSize > MaxSectorSize || sectorSize&(sectorSize-1) != 0 {
		return nil, SectorSizeError(sectorSize)
	}
	s := &Sectors{
		mode:       mode(slices.Index(modeNames, parsed.Mode)),
		iv:         ivKind(slices.Index(ivNames, parsed.IV)),
		sectorSize: sectorSize,
	}
	s.keys, s.freeKeys = secret.Value[keys]()
	clearStack() // lest it grows, and its old place keeps what was there
	err = s.setKeys(key, parsed.IVHash, kernel)
	clearStack()
	if err != nil {
		s.Wipe()
		return nil, fmt.Errorf("modes: %w", err)
	}
	s.kernel = s.keys.data.Kernel()
	return s, nil
}

func (s *Sectors) setKeys(key []byte, essivHash string, kernel serpent.Kernel) error {
	if essivHash != "" {
		if err := initESSIV(&s.keys.essiv, key, essivHash, kernel); err != nil {
			return err
		}
	}
	dataKey := key
	switch s.mode {
	case modeXTS:
		half := len(key) / 2
		dataKey = key[:half]
		if err := s.keys.tweak.Init(key[half:], kernel); err != nil {
			return err
		}
	case modeLRW:
		split := len(key) - lrwTweakKeySize
		dataKey = key[:split]
		s.keys.lrw.init(key[split:])
	}
	return s.keys.data.Init(dataKey, kernel)
}

// clearStack makes room for more than setKeys takes, and overwrites it: the
// compiler, and hash functions, make copies that can be reached in no other way.
//
//go:noinline
func clearStack() {
	var room [16 << 10]byte
	secret.Wipe(room[:])
}

// initESSIV sets c's key to the digest of the volume key.
func initESSIV(c *serpent.Cipher, key []byte, hashName string, kernel serpent.Kernel) error {
	newHash, err := hashes.New(hashName)
	if err != nil {
		return err
	}
	digest := secret.New(maxCipherKeySize)
	defer digest.Close()
	h := newHash()
	defer hashes.Wipe(h)
	h.Write(key)
	n := len(h.Sum(digest.Bytes()[:0]))
	// Serpent's own padding of short keys: a one bit, then zeros.
	if n < maxCipherKeySize {
		digest.Bytes()[n] = 1
	}
	return c.Init(digest.Bytes(), kernel)
}

// SectorSize returns the size of a sector in bytes.
func (s *Sectors) SectorSize() int { return s.sectorSize }

// Kernel returns the kernel that does the work; it is never serpent.Auto.
func (s *Sectors) Kernel() serpent.Kernel { return s.kernel }

// Wipe overwrites and frees the keys. No other method may run meanwhile or
// afterwards; Encrypt and Decrypt then panic.
func (s *Sectors) Wipe() {
	s.keys = nil
	s.freeKeys()
}

// Encrypt writes the encryption of src to dst. src is any number of whole
// sectors, dst is at least as long, and they overlap exactly or not at all.
// first is the number of the first sector, in units of 512 bytes.
func (s *Sectors) Encrypt(dst, src []byte, first uint64) { s.crypt(dst, src, first, true) }

// Decrypt is the inverse of Encrypt, with the same rules.
func (s *Sectors) Decrypt(dst, src []byte, first uint64) { s.crypt(dst, src, first, false) }

func (s *Sectors) crypt(dst, src []byte, first uint64, encrypt bool) {
	if s.keys == nil {
		panic("modes: used after Wipe")
	}
	if len(src)%s.sectorSize != 0 {
		panic("modes: input not whole sectors")
	}
	if len(dst) < len(src) {
		panic("modes: output smaller than input")
	}
	dst = dst[:len(src)]
	if inexactOverlap(dst, src) {
		panic("modes: invalid buffer overlap")
	}
	switch {
	case s.mode == modeECB && encrypt:
		s.keys.data.EncryptBlocks(dst, src)
	case s.mode == modeECB:
		s.keys.data.DecryptBlocks(dst, src)
	case len(src) <= fewSectors*s.sectorSize:
		s.cryptFew(dst, src, first, encrypt)
	default:
		s.cryptMany(dst, src, first, encrypt)
	}
}

// inexactOverlap reports whether x and y, of equal length, share memory
// without being the same.
func inexactOverlap(x, y []byte) bool {
	if len(x) == 0 || &x[0] == &y[0] {
		return false
	}
	xStart, yStart := uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&y[0]))
	return xStart < yStart+uintptr(len(y)) && yStart < xStart+uintptr(len(x))
}
