package serpent

// direction says whether blocks are encrypted or decrypted.
type direction bool

const (
	encrypting direction = false
	decrypting direction = true
)

// pair encrypts or decrypts two blocks by the portable code.
func (c *Cipher) pair(x, y block, d direction) (_, _ block) {
	if d == decrypting {
		return decryptPair(&c.pairs.decrypt, x, y)
	}
	return encryptPair(&c.pairs.encrypt, x, y)
}

// lone encrypts or decrypts one block. The pair's other half stays unused,
// which costs no time: a pair takes as long as its chain of dependent
// operations.
func (c *Cipher) lone(x block, d direction) block {
	x, _ = c.pair(x, block{}, d)
	return x
}

func (c *Cipher) blocksGeneric(dst, src []byte, d direction) {
	for len(src) >= 2*BlockSize {
		x, y := c.pair(loadBlock(src), loadBlock(src[BlockSize:]), d)
		x.store(dst)
		y.store(dst[BlockSize:])
		dst, src = dst[2*BlockSize:], src[2*BlockSize:]
	}
	if len(src) > 0 {
		c.lone(loadBlock(src), d).store(dst)
	}
}

func (c *Cipher) xexGeneric(dst, src, tweaks []byte, d direction) {
	for len(src) >= 2*BlockSize {
		t, u := loadBlock(tweaks), loadBlock(tweaks[BlockSize:])
		x, y := c.pair(loadBlock(src).xor(t), loadBlock(src[BlockSize:]).xor(u), d)
		x.xor(t).store(dst)
		y.xor(u).store(dst[BlockSize:])
		dst, src, tweaks = dst[2*BlockSize:], src[2*BlockSize:], tweaks[2*BlockSize:]
	}
	if len(src) > 0 {
		t := loadBlock(tweaks)
		c.lone(loadBlock(src).xor(t), d).xor(t).store(dst)
	}
}

// xtsGeneric works on a sector, or on the rest of one, from tweak t on.
func (c *Cipher) xtsGeneric(dst, src []byte, t block, d direction) {
	for len(src) >= 2*BlockSize {
		u := t.double()
		x, y := c.pair(loadBlock(src).xor(t), loadBlock(src[BlockSize:]).xor(u), d)
		x.xor(t).store(dst)
		y.xor(u).store(dst[BlockSize:])
		dst, src, t = dst[2*BlockSize:], src[2*BlockSize:], u.double()
	}
	if len(src) > 0 {
		c.lone(loadBlock(src).xor(t), d).xor(t).store(dst)
	}
}

// ctrGeneric works on a sector, or on the rest of one, from counter n on.
func (c *Cipher) ctrGeneric(dst, src []byte, n counter) {
	for len(src) >= 2*BlockSize {
		m := n.next()
		x, y := c.pair(n.block(), m.block(), encrypting)
		x.xor(loadBlock(src)).store(dst)
		y.xor(loadBlock(src[BlockSize:])).store(dst[BlockSize:])
		dst, src, n = dst[2*BlockSize:], src[2*BlockSize:], m.next()
	}
	if len(src) > 0 {
		c.lone(n.block(), encrypting).xor(loadBlock(src)).store(dst)
	}
}

// decryptCBCGeneric works on a sector, or on the rest of one; iv is the
// ciphertext before it.
func (c *Cipher) decryptCBCGeneric(dst, src []byte, iv block) {
	for len(src) >= 2*BlockSize {
		u, v := loadBlock(src), loadBlock(src[BlockSize:])
		x, y := c.pair(u, v, decrypting)
		x.xor(iv).store(dst)
		y.xor(u).store(dst[BlockSize:])
		dst, src, iv = dst[2*BlockSize:], src[2*BlockSize:], v
	}
	if len(src) > 0 {
		c.lone(loadBlock(src), decrypting).xor(iv).store(dst)
	}
}

// encryptCBCGeneric works on whole sectors, two at a time.
func (c *Cipher) encryptCBCGeneric(dst, src, ivs []byte, sectorSize int) {
	for len(ivs) >= 2*BlockSize {
		x, y := loadBlock(ivs), loadBlock(ivs[BlockSize:])
		for i, j := 0, sectorSize; i < sectorSize; i, j = i+BlockSize, j+BlockSize {
			x, y = c.pair(x.xor(loadBlock(src[i:])), y.xor(loadBlock(src[j:])), encrypting)
			x.store(dst[i:])
			y.store(dst[j:])
		}
		dst, src, ivs = dst[2*sectorSize:], src[2*sectorSize:], ivs[2*BlockSize:]
	}
	if len(ivs) > 0 {
		x := loadBlock(ivs)
		for i := 0; i < sectorSize; i += BlockSize {
			x = c.lone(x.xor(loadBlock(src[i:])), encrypting)
			x.store(dst[i:])
		}
	}
}
