package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// writeSHANI adds the kernel for CPUs with instructions for SHA-1. These hold
// four words in a register, the first in the highest lane. E is in the highest
// lane of its own register, and before each four rounds is added to the words
// of the schedule that these rounds take.
func writeSHANI(c *build.Context) {
	s := newStream(c, "SHANI", "order *[16]byte",
		"order: 16 bytes, 15 down to 0, which reverse a register.",
		"Registers: ABCD and E of the state and of the block's start, 16 words of the schedule.",
		"Algorithm: FIPS 180-4, 6.1.2, by SHA extensions (Intel SDM, volume 2, SHA1RNDS4).",
		"No branch and no address depends on the data.")
	order := c.XMM()
	c.MOVOU(operand.Mem{Base: c.Load(c.Param("order"), c.GP64())}, order)
	abcd, startABCD, startE := c.XMM(), c.XMM(), c.XMM()
	e := [2]reg.VecVirtual{c.XMM(), c.XMM()} // of these four rounds and of the next
	w := [4]reg.VecVirtual{c.XMM(), c.XMM(), c.XMM(), c.XMM()}

	c.MOVOU(operand.Mem{Base: s.src}, abcd)
	c.PSHUFB(order, abcd)
	c.MOVSS(operand.Mem{Base: s.src, Disp: 16}, e[0]) // the other lanes are zero, and stay so at the start of a block
	c.PSHUFB(order, e[0])
	s.eachBlock(func() {
		c.MOVO(abcd, startABCD)
		c.MOVO(e[0], startE)
		for g := range 20 {
			words := w[g%4]
			if g < 4 {
				c.MOVOU(operand.Mem{Base: s.p, Disp: 16 * g}, words)
				c.PSHUFB(order, words)
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
	})
	c.PSHUFB(order, abcd)
	c.PSHUFB(order, e[0])
	c.MOVOU(abcd, operand.Mem{Base: s.dst})
	c.MOVSS(e[0], operand.Mem{Base: s.dst, Disp: 16})
	c.RET()
}
