package modes

import (
	"crypto/cipher"
	"encoding/binary"
	"reflect"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/secret"
)

// blockwise holds what a cipher other than Serpent has instead of keys: all nil
// where the cipher is Serpent. It runs the modes over one block after another.
//
// Go takes it that a method called through an interface may keep its arguments,
// so that these must not lie on the stack, or each call would allocate them.
// Therefore IVs and tweaks stay in variables, and are encrypted in dst, which
// the caller has made.
type blockwise struct{ data, tweak, essiv cipher.Block }

// wipe overwrites the round keys where they are part of the values that the
// interfaces point to, as they are in crypto/aes.
func (b *blockwise) wipe() {
	for _, c := range []cipher.Block{b.data, b.tweak, b.essiv} {
		if c != nil {
			reflect.ValueOf(c).Elem().SetZero()
		}
	}
	*b = blockwise{}
}

// crypt works on sectors, each of which has an IV unless the mode is ecb. For
// lrw a sector is a block, and its IV the tweak.
func (b *blockwise) crypt(m mode, dst, src, ivs []byte, sectorSize int, encrypt bool) {
	if m == modeXTS {
		encryptIVs(b.tweak, ivs, dst)
	}
	b.cryptSectors(m, dst, src, ivs, sectorSize, encrypt)
	clearBlockStack()
}

//go:noinline
func (b *blockwise) cryptSectors(m mode, dst, src, ivs []byte, sectorSize int, encrypt bool) {
	// The tweak, the counter, or the ciphertext before.
	var chain element
	for i := 0; i < len(src); i += serpent.BlockSize {
		if i%sectorSize == 0 && m != modeECB {
			chain, ivs = loadElement(ivs), ivs[ivSize:]
		}
		in, out := loadElement(src[i:]), dst[i:i+serpent.BlockSize]
		switch {
		case m == modeECB:
			in = cryptBlock(b.data, out, in, encrypt)
		case m == modeCBC && encrypt:
			in = cryptBlock(b.data, out, in.plus(chain), true)
			chain = in
		case m == modeCBC:
			in, chain = cryptBlock(b.data, out, in, false).plus(chain), in
		case m == modeCTR:
			in = cryptBlock(b.data, out, chain, true).plus(in)
			chain = chain.increment()
		case m == modeLRW, m == modeXTS:
			in = cryptBlock(b.data, out, in.plus(chain), encrypt).plus(chain)
			chain = chain.double()
		}
		in.store(out)
	}
}

// encryptIVs encrypts each IV by way of room, which has a block, and puts back
// what was there.
//
//go:noinline
func encryptIVs(c cipher.Block, ivs, room []byte) {
	before := loadElement(room)
	for ; len(ivs) > 0; ivs = ivs[ivSize:] {
		cryptBlock(c, room[:ivSize], loadElement(ivs), true).store(ivs)
	}
	before.store(room)
}

// cryptBlock returns what c makes of x. It does so in room, a block.
func cryptBlock(c cipher.Block, room []byte, x element, encrypt bool) element {
	x.store(room)
	if encrypt {
		c.Encrypt(room, room)
	} else {
		c.Decrypt(room, room)
	}
	return loadElement(room)
}

// clearBlockStack overwrites where the functions above had their variables.
//
//go:noinline
func clearBlockStack() {
	var room [1 << 10]byte
	secret.Wipe(room[:])
}

// double multiplies an XTS tweak by alpha (IEEE 1619-2018, 5.2).
func (e element) double() element {
	carry := -(e.last >> 63)
	return element{e.first<<1 ^ carry&0x87, e.last<<1 | e.first>>63}
}

// increment counts a counter block, a big-endian number, up by one.
func (e element) increment() element {
	var b [serpent.BlockSize]byte
	e.store(b[:])
	n := loadNumber(b[:]).plus(1)
	binary.BigEndian.PutUint64(b[:], n.high)
	binary.BigEndian.PutUint64(b[8:], n.low)
	return loadElement(b[:])
}
