package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// roundConstants are those of the four groups of 20 rounds (FIPS 180-4, 4.2.1).
var roundConstants = [4]uint32{0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6}

// writeScalar adds the kernel for every amd64 CPU: the five variables and what
// a round needs are in general registers, the 16 words of the schedule that are
// still needed in memory.
func writeScalar(c *build.Context) {
	s := newStream(c, "Scalar", "firstConstant *uint32, words *[16]uint32",
		"firstConstant: 4 bytes, the constant of the first round.",
		"words: 64 bytes for the schedule, all zero in the end.",
		"Registers: a to e, a word of the schedule, a term of a round.",
		"Algorithm: FIPS 180-4, 6.1.3.",
		"No branch and no address depends on the data.")
	firstConstant := operand.Mem{Base: c.Load(c.Param("firstConstant"), c.GP64())}
	words := c.Load(c.Param("words"), c.GP64())
	v := [5]reg.GPVirtual{c.GP32(), c.GP32(), c.GP32(), c.GP32(), c.GP32()}
	x, y := c.GP32(), c.GP32()
	word := func(i int) operand.Mem { return operand.Mem{Base: words, Disp: 4 * (i & 15)} }
	state := func(i int) operand.Mem { return operand.Mem{Base: s.dst, Disp: 4 * i} }

	for i := range v {
		c.MOVL(operand.Mem{Base: s.src, Disp: 4 * i}, v[i])
		c.BSWAPL(v[i])
		c.MOVL(v[i], state(i))
	}
	s.eachBlock(func() {
		for i := range 80 {
			// The variables move from round to round; here their names do.
			variable := func(n int) reg.GPVirtual { return v[(80-i+n)%5] }
			a, b, cc, d, e := variable(0), variable(1), variable(2), variable(3), variable(4)
			if i < 16 {
				c.MOVL(operand.Mem{Base: s.p, Disp: 4 * i}, x)
				c.BSWAPL(x)
			} else {
				c.MOVL(word(i), x)
				c.XORL(word(i-14), x)
				c.XORL(word(i-8), x)
				c.XORL(word(i-3), x)
				c.RORL(operand.U8(31), x) // one operation, where ROLL $1 is two
			}
			c.MOVL(x, word(i))
			if i == 0 {
				c.ADDL(firstConstant, e)
				c.ADDL(x, e)
			} else {
				c.LEAL(operand.Mem{Base: e, Index: x, Scale: 1, Disp: int(int32(roundConstants[i/20]))}, e)
			}
			addTerm(c, i, b, cc, d, e, y)
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

// addTerm adds the function of b, c and d in round i (FIPS 180-4, 4.1.1) to e.
// What was computed last, b, comes in last. The two terms of majority have no
// bit in common, and are added one by one.
func addTerm(c *build.Context, i int, b, cc, d, e, y reg.GPVirtual) {
	if i/20 == 2 {
		c.MOVL(cc, y)
		c.ANDL(d, y)
		c.ADDL(y, e)
	}
	c.MOVL(cc, y)
	c.XORL(d, y)
	switch i / 20 {
	case 0: // choose: d ^ b & (c ^ d)
		c.ANDL(b, y)
		c.XORL(d, y)
	case 1, 3: // parity: b ^ c ^ d
		c.XORL(b, y)
	case 2: // majority: c & d + b & (c ^ d)
		c.ANDL(b, y)
	}
	c.ADDL(y, e)
}
