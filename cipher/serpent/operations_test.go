package serpent

import (
	"crypto/cipher"
	"crypto/subtle"
)

// ivUse says how many tweaks or IVs an operation takes.
type ivUse int

const (
	noIV ivUse = iota
	ivPerBlock
	ivPerSector
)

// operation is one method on many blocks, and what it should do to one sector
// by the reference.
type operation struct {
	name    string
	ivs     ivUse
	inverse string // the operation that undoes it
	run     func(c *Cipher, dst, src, ivs []byte)
	want    func(r *reference, dst, src, ivs []byte)
}

var operations = []operation{
	{"EncryptBlocks", noIV, "DecryptBlocks",
		func(c *Cipher, dst, src, _ []byte) { c.EncryptBlocks(dst, src) },
		func(r *reference, dst, src, _ []byte) { eachBlock(dst, src, nil, r.Encrypt) }},
	{"DecryptBlocks", noIV, "EncryptBlocks",
		func(c *Cipher, dst, src, _ []byte) { c.DecryptBlocks(dst, src) },
		func(r *reference, dst, src, _ []byte) { eachBlock(dst, src, nil, r.Decrypt) }},
	{"EncryptXEX", ivPerBlock, "DecryptXEX", (*Cipher).EncryptXEX,
		func(r *reference, dst, src, tweaks []byte) { eachBlock(dst, src, tweaks, r.Encrypt) }},
	{"DecryptXEX", ivPerBlock, "EncryptXEX", (*Cipher).DecryptXEX,
		func(r *reference, dst, src, tweaks []byte) { eachBlock(dst, src, tweaks, r.Decrypt) }},
	{"EncryptXTS", ivPerSector, "DecryptXTS", (*Cipher).EncryptXTS,
		func(r *reference, dst, src, tweak []byte) { eachBlock(dst, src, powers(tweak, len(src)), r.Encrypt) }},
	{"DecryptXTS", ivPerSector, "EncryptXTS", (*Cipher).DecryptXTS,
		func(r *reference, dst, src, tweak []byte) { eachBlock(dst, src, powers(tweak, len(src)), r.Decrypt) }},
	{"EncryptCBC", ivPerSector, "DecryptCBC", (*Cipher).EncryptCBC,
		func(r *reference, dst, src, iv []byte) { cipher.NewCBCEncrypter(r, iv).CryptBlocks(dst, src) }},
	{"DecryptCBC", ivPerSector, "EncryptCBC", (*Cipher).DecryptCBC,
		func(r *reference, dst, src, iv []byte) { cipher.NewCBCDecrypter(r, iv).CryptBlocks(dst, src) }},
	{"CryptCTR", ivPerSector, "CryptCTR", (*Cipher).CryptCTR,
		func(r *reference, dst, src, iv []byte) { cipher.NewCTR(r, iv).XORKeyStream(dst, src) }},
}

// eachBlock XORs each block with its tweak, if there are tweaks, before and
// after f.
func eachBlock(dst, src, tweaks []byte, f func(dst, src []byte)) {
	x := make([]byte, BlockSize)
	for i := 0; i < len(src); i += BlockSize {
		copy(x, src[i:])
		if tweaks != nil {
			subtle.XORBytes(x, x, tweaks[i:])
		}
		f(x, x)
		if tweaks != nil {
			subtle.XORBytes(x, x, tweaks[i:])
		}
		copy(dst[i:], x)
	}
}

// powers returns n bytes of tweaks: the first, and each the double of the last,
// bit by bit as in IEEE 1619-2018, 5.2.
func powers(tweak []byte, n int) []byte {
	t := [BlockSize]byte(tweak)
	var tweaks []byte
	for len(tweaks) < n {
		tweaks = append(tweaks, t[:]...)
		carry := byte(0)
		for i, b := range t {
			t[i], carry = b<<1|carry, b>>7
		}
		if carry == 1 {
			t[0] ^= 0x87
		}
	}
	return tweaks
}

// ivBytes returns how many bytes of tweaks or IVs o takes.
func (o *operation) ivBytes(sectors, sectorSize int) int {
	switch o.ivs {
	case ivPerBlock:
		return sectors * sectorSize
	case ivPerSector:
		return sectors * BlockSize
	}
	return 0
}
