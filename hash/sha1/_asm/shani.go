package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in the constants of the kernel.
const (
	orderOffset = 0
	zerosOffset = 16 // of one block
	markOffset  = zerosOffset + blockBytes
)

// writeSHANI adds the kernel for CPUs with instructions for SHA-1. These hold
// four words in a register, the first in the highest lane. E is in the highest
// lane of its own register, and before each four rounds is added to the words
// of the schedule that these rounds take.
//
// The kernel pads the message itself. Were the padding written to memory first,
// loads of 16 bytes would have to wait for all the narrower stores before them:
// a message of one block would take half as long again. Instead the last blocks
// are the or of the message's end and of the mark behind it, which comes from a
// table that has it at any place. The length is added in a register, and is zero
// but in the last block.
func writeSHANI(c *build.Context) {
	c.Function("compressSHANI")
	c.Doc("compressSHANI takes blocks of p into the hash value src, which is kept as the bytes of a digest,",
		"and puts the outcome into dst. dst may be src. It then does so with the last tailBytes of a",
		"message of bits, which are in tail, and their padding. tailBlocks is how many blocks they make,",
		"or 0 if the message has not ended. The bytes in tail that are not of the message are zero.")
	c.Pragma("noescape")
	c.SignatureExpr("func(dst, src *[20]byte, p *byte, blocks int, tail *[64]byte, tailBytes, tailBlocks, bits int, constants *[144]byte)")
	c.Comment(
		"dst, src: 20 bytes, five big-endian words.",
		"p: 64 bytes for each block, at any address. tail: 64 bytes.",
		"constants: 144 bytes: 15 down to 0, which reverse a register; 64 times 0; 0x80; 63 times 0.",
		"Registers: ABCD and E of the state and of the block's start, 16 words of the schedule,",
		"the length in the lowest lanes, the reversed order, a part of the padding.",
		"Algorithm: FIPS 180-4, 5.1.1 and 6.1.2, by SHA extensions (Intel SDM, volume 2, SHA1RNDS4).",
		"No branch and no address depends on the data.")
	dst := c.Load(c.Param("dst"), c.GP64())
	src := c.Load(c.Param("src"), c.GP64())
	p := c.Load(c.Param("p"), c.GP64())
	left := c.Load(c.Param("blocks"), c.GP64())
	constants := c.Load(c.Param("constants"), c.GP64())
	order, length, part := c.XMM(), c.XMM(), c.XMM()
	abcd, startABCD, startE := c.XMM(), c.XMM(), c.XMM()
	e := [2]reg.VecVirtual{c.XMM(), c.XMM()} // of these four rounds and of the next
	w := [4]reg.VecVirtual{c.XMM(), c.XMM(), c.XMM(), c.XMM()}

	c.MOVOU(operand.Mem{Base: constants, Disp: orderOffset}, order)
	c.PXOR(length, length)
	c.MOVOU(operand.Mem{Base: src}, abcd)
	c.PSHUFB(order, abcd)
	c.MOVSS(operand.Mem{Base: src, Disp: 16}, e[0]) // the other lanes are zero, and stay so at the start of a block
	c.PSHUFB(order, e[0])
	c.CMPQ(left, operand.U8(0))
	c.JEQ(operand.LabelRef("tail"))

	// load puts four words of the message into a register.
	rounds := func(load func(g int, words reg.Register)) {
		c.MOVO(abcd, startABCD)
		c.MOVO(e[0], startE)
		for g := range 20 {
			words := w[g%4]
			if g < 4 {
				load(g, words)
			}
			if g == 0 {
				c.PADDL(words, e[0])
			} else {
				c.SHA1NEXTE(words, e[g%2])
			}
			c.MOVO(abcd, e[(g+1)%2])
			// The schedule: words for the next four rounds are finished now, the
			// two halves of the work on later ones done as early as can be.
			if 3 <= g && g <= 18 {
				c.SHA1MSG2(words, w[(g+1)%4])
			}
			c.SHA1RNDS4(operand.U8(g/5), e[g%2], abcd)
			if 1 <= g && g <= 16 {
				c.SHA1MSG1(words, w[(g+3)%4])
			}
			if 2 <= g && g <= 17 {
				c.PXOR(words, w[(g+2)%4])
			}
		}
		c.SHA1NEXTE(startE, e[0])
		c.PADDL(startABCD, abcd)
	}

	c.Label("block")
	rounds(func(g int, words reg.Register) {
		c.MOVOU(operand.Mem{Base: p, Disp: 16 * g}, words)
		c.PSHUFB(order, words)
	})
	c.ADDQ(operand.U8(blockBytes), p)
	c.DECQ(left)
	c.JNZ(operand.LabelRef("block"))

	c.Label("tail")
	c.Load(c.Param("tailBlocks"), left)
	c.CMPQ(left, operand.U8(0))
	c.JEQ(operand.LabelRef("end"))
	tail := c.Load(c.Param("tail"), c.GP64())
	zeros, padding := c.GP64(), c.GP64()
	c.LEAQ(operand.Mem{Base: constants, Disp: zerosOffset}, zeros)
	c.LEAQ(operand.Mem{Base: constants, Disp: markOffset}, padding)
	c.SUBQ(c.Load(c.Param("tailBytes"), c.GP64()), padding)

	c.Label("tailBlock")
	c.DECQ(left)
	c.JNZ(operand.LabelRef("tailRounds"))
	c.MOVQ(c.Load(c.Param("bits"), c.GP64()), length)
	c.Label("tailRounds")
	rounds(func(g int, words reg.Register) {
		c.MOVOU(operand.Mem{Base: tail, Disp: 16 * g}, words)
		c.MOVOU(operand.Mem{Base: padding, Disp: 16 * g}, part)
		c.POR(part, words)
		c.PSHUFB(order, words)
		if g == 3 {
			c.POR(length, words)
		}
	})
	// After it may come a block that is all zeros but for the length.
	c.MOVQ(zeros, tail)
	c.MOVQ(zeros, padding)
	c.CMPQ(left, operand.U8(0))
	c.JNE(operand.LabelRef("tailBlock"))

	c.Label("end")
	c.PSHUFB(order, abcd)
	c.PSHUFB(order, e[0])
	c.MOVOU(abcd, operand.Mem{Base: dst})
	c.MOVSS(e[0], operand.Mem{Base: dst, Disp: 16})
	c.RET()
}
