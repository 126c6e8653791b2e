// Package modes encrypts and decrypts runs of disk sectors, as the
// specification of a container says: "serpent-xts-plain64",
// "aes-cbc-essiv:sha256" and so on. Everything is as in Linux dm-crypt
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
//     which Serpent pads itself; AES takes one of 16, 24 or 32 bytes. Hashes have
//     dm-crypt's names: rmd160 is ripemd160.
//
// Serpent runs by its kernels, many blocks at a time. AES is there to open what
// others have made, above all the key slots of LUKS2, and runs by crypto/aes, a
// block at a time. That keeps its round keys on Go's heap: they are not locked
// and may be swapped out or dumped, and Wipe overwrites them as far as crypto/aes
// lets it.
package modes

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"slices"
	"unsafe"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/hashes"
	"serpcrypt/internal/secret"
)

// Sizes of a sector in bytes: the powers of two in this range.
const (
	minSectorSize = 512
	maxSectorSize = 4096
)

// IsSectorSize reports whether sectors can have so many bytes.
func IsSectorSize(bytes int) bool {
	return bytes >= minSectorSize && bytes <= maxSectorSize && bytes&(bytes-1) == 0
}

// SectorSizeError is a size in bytes that sectors cannot have.
type SectorSizeError int

func (e SectorSizeError) Error() string {
	return fmt.Sprintf("modes: sectors of %d bytes (must be a power of two from %d to %d)", int(e), minSectorSize, maxSectorSize)
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
	blocks     blockwise // where the cipher is not Serpent
}

// keys live in locked memory; what cipher, mode and IV do not need stays zero.
type keys struct {
	data  serpent.Cipher
	tweak serpent.Cipher // XTS
	essiv serpent.Cipher
	lrw   lrwTable
}

// New returns the sector cipher that spec describes, under a copy of the volume
// key. It is to be wiped after use. The kernel is for Serpent; other ciphers have
// none. The error is a *SpecError for a wrong specification or key size, a
// SectorSizeError, or a *serpent.KernelError.
func New(spec string, key []byte, sectorSize int, kernel serpent.Kernel) (*Sectors, error) {
	parsed, err := ParseSpec(spec)
	if err != nil {
		return nil, err
	}
	if err := parsed.CheckKeySize(len(key)); err != nil {
		return nil, err
	}
	if !IsSectorSize(sectorSize) {
		return nil, SectorSizeError(sectorSize)
	}
	s := &Sectors{
		mode:       mode(slices.Index(modeNames, parsed.Mode)),
		iv:         ivKind(slices.Index(ivNames, parsed.IV)),
		sectorSize: sectorSize,
	}
	if s.keys, s.freeKeys, err = secret.Value[keys](); err != nil {
		return nil, fmt.Errorf("modes: %w", err)
	}
	clearStack() // lest it grows, and its old place keeps what was there
	err = s.setKeys(key, parsed, kernel)
	clearStack()
	if err != nil {
		s.Wipe()
		return nil, fmt.Errorf("modes: %w", err)
	}
	s.kernel = s.keys.data.Kernel()
	return s, nil
}

func (s *Sectors) setKeys(key []byte, spec Spec, kernel serpent.Kernel) error {
	setKey := func(c *serpent.Cipher, b *cipher.Block, key []byte) (err error) {
		if spec.Cipher == aesName {
			*b, err = aes.NewCipher(key)
			return err
		}
		return c.Init(key, kernel)
	}
	if spec.IVHash != "" {
		essivKey, err := newESSIVKey(key, spec)
		if err != nil {
			return err
		}
		defer essivKey.Close()
		if err := setKey(&s.keys.essiv, &s.blocks.essiv, essivKey.Bytes()); err != nil {
			return err
		}
	}
	dataKey := key
	switch s.mode {
	case modeXTS:
		half := len(key) / 2
		dataKey = key[:half]
		if err := setKey(&s.keys.tweak, &s.blocks.tweak, key[half:]); err != nil {
			return err
		}
	case modeLRW:
		split := len(key) - lrwTweakKeySize
		dataKey = key[:split]
		s.keys.lrw.init(key[split:])
	}
	return setKey(&s.keys.data, &s.blocks.data, dataKey)
}

// clearStack makes room for more than setKeys takes, and overwrites it: the
// compiler, and hash functions, make copies that can be reached in no other way.
//
//go:noinline
func clearStack() {
	var room [16 << 10]byte
	secret.Wipe(room[:])
}

// newESSIVKey returns the digest of the volume key.
func newESSIVKey(key []byte, spec Spec) (*secret.Buffer, error) {
	newHash, err := essivHash(spec.IVHash)
	if err != nil {
		return nil, err
	}
	digest, err := secret.New(maxCipherKeySize)
	if err != nil {
		return nil, err
	}
	h := newHash()
	defer hashes.Wipe(h)
	h.Write(key)
	n := len(h.Sum(digest.Bytes()[:0]))
	switch {
	case spec.Cipher != serpentName:
		digest.Truncate(n)
	case n < maxCipherKeySize:
		// Serpent's own padding of short keys: a one bit, then zeros.
		digest.Bytes()[n] = 1
	}
	return digest, nil
}

// SectorSize returns the size of a sector in bytes.
func (s *Sectors) SectorSize() int { return s.sectorSize }

// Kernel returns Serpent's kernel that does the work, never serpent.Auto. Another
// cipher has none, and it is serpent.Auto.
func (s *Sectors) Kernel() serpent.Kernel { return s.kernel }

// Wipe overwrites and frees the keys. No other method may run meanwhile or
// afterwards; Encrypt and Decrypt then panic.
func (s *Sectors) Wipe() {
	s.keys = nil
	s.freeKeys()
	s.blocks.wipe()
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
	case s.mode == modeECB && s.blocks.data != nil:
		s.blocks.crypt(modeECB, dst, src, nil, s.sectorSize, encrypt)
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
