package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// writeScalar adds the kernel for every amd64 CPU: the five variables and what
// a round needs are in general registers, the 16 words of the schedule that are
// still needed in memory.
func writeScalar(c *build.Context) {
	s := newStream(c, "Scalar", "constants *[4]uint32, words *[16]uint32",
		"constants: 16 bytes, one word for each 20 rounds.",
		"words: 64 bytes for the schedule, all zero in the end.",
		"Registers: a to e, two of what a round computes, the constant.",
		"Algorithm: FIPS 180-4, 6.1.3.",
		"No branch and no address depends on the data.")
	constants := c.Load(c.Param("constants"), c.GP64())
	words := c.Load(c.Param("words"), c.GP64())
	v := [5]reg.GPVirtual{c.GP32(), c.GP32(), c.GP32(), c.GP32(), c.GP32()}
	k, x, y := c.GP32(), c.GP32(), c.GP32()
	state := func(i int) operand.Mem { return operand.Mem{Base: s.state, Disp: 4 * i} }
	word := func(i int) operand.Mem { return operand.Mem{Base: words, Disp: 4 * (i & 15)} }

	for i := range v {
		c.MOVL(state(i), v[i])
		c.BSWAPL(v[i])
		c.MOVL(v[i], state(i))
	}
	s.eachBlock(func() {
		for i := range 80 {
			group := i / 20
			if i%20 == 0 {
				c.MOVL(operand.Mem{Base: constants, Disp: 4 * group}, k)
			}
			a, b, cc, d, e := v[(80-i)%5], v[(81-i)%5], v[(82-i)%5], v[(83-i)%5], v[(84-i)%5]
			if i < 16 {
				c.MOVL(operand.Mem{Base: s.p, Disp: 4 * i}, x)
				c.BSWAPL(x)
			} else {
				c.MOVL(word(i), x)
				c.XORL(word(i-14), x)
				c.XORL(word(i-8), x)
				c.XORL(word(i-3), x)
				c.RORL(operand.U8(31), x) // ROLL $1 takes two operations
			}
			c.MOVL(x, word(i))
			c.ADDL(k, e)
			c.ADDL(x, e)
			switch group {
			case 0: // choose: d ^ b & (c ^ d)
				c.MOVL(cc, y)
				c.XORL(d, y)
				c.ANDL(b, y)
				c.XORL(d, y)
				c.ADDL(y, e)
			case 1, 3: // parity: b ^ c ^ d
				c.MOVL(cc, y)
				c.XORL(d, y)
				c.XORL(b, y)
				c.ADDL(y, e)
			case 2: // majority: c & d + b & (c ^ d)
				c.MOVL(cc, y)
				c.ANDL(d, y)
				c.ADDL(y, e)
				c.MOVL(cc, y)
				c.XORL(d, y)
				c.ANDL(b, y)
				c.ADDL(y, e)
			}
			c.MOVL(a, y)
			c.ROLL(operand.U8(5), y)
			c.ADDL(y, e)
			c.RORL(operand.U8(2), b)
		}
		for i := range v {
			c.ADDL(state(i), v[i])
			c.MOVL(v[i], state(i))
		}
	})
	for i := range v {
		c.BSWAPL(v[i])
		c.MOVL(v[i], state(i))
	}
	zero := c.XMM()
	c.PXOR(zero, zero)
	for i := range 4 {
		c.MOVOU(zero, word(4*i))
	}
	c.RET()
}
