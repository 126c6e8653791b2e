package serpent

import "unsafe"

// In all methods of this file dst is at least as long as src, which is a
// multiple of BlockSize, or they panic. dst and src overlap exactly or not at
// all; dst does not overlap the tweaks or IVs, which are only read. Nothing is
// allocated, and no argument is kept.

// EncryptBlocks encrypts each block on its own (ECB).
func (c *Cipher) EncryptBlocks(dst, src []byte) { c.blocks(dst, src, encrypting) }

// DecryptBlocks is the inverse of EncryptBlocks.
func (c *Cipher) DecryptBlocks(dst, src []byte) { c.blocks(dst, src, decrypting) }

func (c *Cipher) blocks(dst, src []byte, d direction) {
	c.check(dst, src)
	n := c.blocksVector(dst, src, d)
	c.blocksGeneric(dst[n:], src[n:], d)
}

// EncryptXEX encrypts each block XORed with its tweak, and XORs the outcome
// with the same tweak (LRW). tweaks is as long as src.
func (c *Cipher) EncryptXEX(dst, src, tweaks []byte) { c.xex(dst, src, tweaks, encrypting) }

// DecryptXEX is the inverse of EncryptXEX.
func (c *Cipher) DecryptXEX(dst, src, tweaks []byte) { c.xex(dst, src, tweaks, decrypting) }

func (c *Cipher) xex(dst, src, tweaks []byte, d direction) {
	c.check(dst, src)
	if len(tweaks) != len(src) {
		panic("serpent: not one tweak per block")
	}
	n := c.xexVector(dst, src, tweaks, d)
	c.xexGeneric(dst[n:], src[n:], tweaks[n:], d)
}

// EncryptXTS encrypts len(tweaks)/16 sectors of equal size, a multiple of
// BlockSize, as XTS does (IEEE 1619-2018). Each sector starts with its tweak,
// the encrypted sector number, which is doubled from block to block.
func (c *Cipher) EncryptXTS(dst, src, tweaks []byte) { c.xts(dst, src, tweaks, encrypting) }

// DecryptXTS is the inverse of EncryptXTS.
func (c *Cipher) DecryptXTS(dst, src, tweaks []byte) { c.xts(dst, src, tweaks, decrypting) }

func (c *Cipher) xts(dst, src, firsts []byte, d direction) {
	s := series{kind: tweaks, firsts: firsts, sectorSize: c.checkSectors(dst, src, firsts)}
	for n := c.seriesVector(dst, src, &s, d); n < len(src); {
		tweak, size := s.sector()
		c.xtsGeneric(dst[n:n+size], src[n:n+size], tweak, d)
		n += size
	}
	wipe(&s) // it holds a tweak
}

// EncryptCBC encrypts len(ivs)/16 sectors of equal size, a multiple of
// BlockSize, each as a CBC chain with its IV. It works on several sectors at
// once, so that many in one call are faster than one.
func (c *Cipher) EncryptCBC(dst, src, ivs []byte) {
	size := c.checkSectors(dst, src, ivs)
	sectors := c.encryptCBCVector(dst, src, ivs, size)
	n := sectors * size
	c.encryptCBCGeneric(dst[n:], src[n:], ivs[sectors*BlockSize:], size)
}

// DecryptCBC is the inverse of EncryptCBC. One sector alone is as fast as many.
func (c *Cipher) DecryptCBC(dst, src, ivs []byte) {
	s := series{kind: ciphertexts, firsts: ivs, sectorSize: c.checkSectors(dst, src, ivs)}
	for n := c.seriesVector(dst, src, &s, decrypting); n < len(src); {
		iv, size := s.sector()
		c.decryptCBCGeneric(dst[n:n+size], src[n:n+size], iv)
		n += size
	}
	wipe(&s) // it may hold an IV
}

// CryptCTR encrypts or decrypts len(ivs)/16 sectors of equal size, a multiple
// of BlockSize, in counter mode. Each IV is the sector's first counter block,
// counted up as a big-endian number of 128 bits.
func (c *Cipher) CryptCTR(dst, src, ivs []byte) {
	s := series{kind: counters, firsts: ivs, sectorSize: c.checkSectors(dst, src, ivs)}
	for n := c.seriesVector(dst, src, &s, encrypting); n < len(src); {
		first, size := s.sector()
		c.ctrGeneric(dst[n:n+size], src[n:n+size], first.counter())
		n += size
	}
}

// check panics unless c has a key and the lengths and places are right.
func (c *Cipher) check(dst, src []byte) {
	if c.kernel == Auto {
		panic("serpent: cipher without a key")
	}
	if len(src)%BlockSize != 0 {
		panic("serpent: input not full blocks")
	}
	if len(dst) < len(src) {
		panic("serpent: output smaller than input")
	}
	if inexactOverlap(dst[:len(src)], src) {
		panic("serpent: invalid buffer overlap")
	}
}

// checkSectors does the same for sectors, and returns their size. Without
// sectors it is 0.
func (c *Cipher) checkSectors(dst, src, ivs []byte) (size int) {
	c.check(dst, src)
	if len(ivs)%BlockSize != 0 {
		panic("serpent: tweaks or IVs not full blocks")
	}
	sectors := len(ivs) / BlockSize
	if sectors == 0 {
		if len(src) > 0 {
			panic("serpent: no tweaks or IVs")
		}
		return 0
	}
	if size = len(src) / sectors; size%BlockSize != 0 || size*sectors != len(src) {
		panic("serpent: sectors not of equal size in full blocks")
	}
	return size
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
