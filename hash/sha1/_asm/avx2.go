package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	pairBytes     = 2 * blockBytes
	groups        = 20                     // of four rounds
	scheduleBytes = 2 * 4 * 80             // of two blocks
	swapOffset    = 4 * 32                 // in the constants of the kernel
	vectors       = 2 * scheduleBytes / 32 // that they fill
	blocksOfPair  = 2
)

// writeAVX2 adds the kernel for runs of blocks on CPUs without SHA-NI. The
// schedules of two blocks are computed at once, the words of one in each half of
// a register, while general registers do the rounds of the two blocks before.
func writeAVX2(c *build.Context) {
	c.Function("compressAVX2")
	c.Doc("compressAVX2 takes pairs > 0 times two blocks of p into the hash value, which is kept as the",
		"bytes of a digest.")
	c.Pragma("noescape")
	c.SignatureExpr("func(state *[20]byte, p *byte, pairs int, constants *[40]uint32, words *[320]uint32)")
	c.Comment(
		"state: 20 bytes, five big-endian words.",
		"p: 128 bytes for each pair, at any address.",
		"constants: 160 bytes: those of each 20 rounds, each 8 times; twice the order of bytes that",
		"reverses four words.",
		"words: 1280 bytes for two schedules of two blocks with the constants added, four words of",
		"one block and then of the other. All zero in the end.",
		"Registers: 32 words of the schedule for each block; a to e, two terms of a round.",
		"Algorithm: FIPS 180-4, 6.1.2; the schedule as in M. Locktyukhin, Improving the Performance of",
		"the Secure Hash Algorithm (SHA-1), Intel, 2010.",
		"No branch and no address depends on the data.")
	p := c.Load(c.Param("p"), c.GP64())
	pairs := c.Load(c.Param("pairs"), c.GP64())
	words := c.Load(c.Param("words"), c.GP64())
	next := c.GP64()
	c.LEAQ(operand.Mem{Base: words, Disp: scheduleBytes}, next)
	v := [5]reg.GPVirtual{c.GP32(), c.GP32(), c.GP32(), c.GP32(), c.GP32()}

	for _, step := range scheduleOfPair(c, p, words) {
		step()
	}
	state := c.Load(c.Param("state"), c.GP64())
	word := func(i int) operand.Mem { return operand.Mem{Base: state, Disp: 4 * i} }
	for i := range v {
		c.MOVL(word(i), v[i])
		c.BSWAPL(v[i])
		c.MOVL(v[i], word(i))
	}

	c.Label("pair")
	// The schedule that comes after the last pair is that of this pair again.
	c.CMPQ(pairs, operand.U8(1))
	c.JEQ(operand.LabelRef("lastPair"))
	c.ADDQ(operand.I32(pairBytes), p)
	c.Label("lastPair")
	steps := scheduleOfPair(c, p, next)
	const rounds = blocksOfPair * 80
	done := 0
	for block := range blocksOfPair {
		for i := range 80 {
			roundWithSchedule(c, i, v, operand.Mem{Base: words, Disp: i/4*32 + 16*block + i%4*4})
			for ; done < len(steps)*(80*block+i+1)/rounds; done++ {
				steps[done]()
			}
		}
		state := c.Load(c.Param("state"), c.GP64())
		word := func(i int) operand.Mem { return operand.Mem{Base: state, Disp: 4 * i} }
		for i := range v {
			c.ADDL(word(i), v[i])
			c.MOVL(v[i], word(i))
		}
	}
	other := c.GP64()
	c.MOVQ(words, other)
	c.MOVQ(next, words)
	c.MOVQ(other, next)
	c.DECQ(pairs)
	c.JNZ(operand.LabelRef("pair"))

	c.Load(c.Param("state"), state)
	for i := range v {
		c.BSWAPL(v[i])
		c.MOVL(v[i], word(i))
	}
	c.Load(c.Param("words"), words)
	zero := c.YMM()
	c.VPXOR(zero, zero, zero)
	for i := range vectors {
		c.VMOVDQU(zero, operand.Mem{Base: words, Disp: 32 * i})
	}
	c.VZEROUPPER()
	c.RET()
}

// roundWithSchedule adds round i, whose word and constant are added up at w.
func roundWithSchedule(c *build.Context, i int, v [5]reg.GPVirtual, w operand.Mem) {
	variable := func(n int) reg.GPVirtual { return v[(80-i+n)%5] }
	a, b, cc, d, e := variable(0), variable(1), variable(2), variable(3), variable(4)
	y, z := c.GP32(), c.GP32()
	c.ADDL(w, e)
	addTerm(c, i, b, cc, d, e, y)
	c.RORXL(operand.U8(27), a, z)
	c.ADDL(z, e)
	c.RORL(operand.U8(2), b)
}

// scheduleOfPair returns what adds the schedules of the two blocks at p, with the
// constants, to those at words, an instruction each, in the order in which they
// have to be.
func scheduleOfPair(c *build.Context, p, words reg.Register) (steps []func()) {
	add := func(step func()) { steps = append(steps, step) }
	constants := c.Load(c.Param("constants"), c.GP64())
	var w [8]reg.VecVirtual // of the last eight groups
	for i := range w {
		w[i] = c.YMM()
	}
	x, y, z := c.YMM(), c.YMM(), c.YMM()
	for g := range groups {
		of := func(before int) reg.VecVirtual { return w[(g-before)%8] }
		now := w[g%8]
		switch {
		case g < 4:
			add(func() { c.VMOVDQU(operand.Mem{Base: p, Disp: 16 * g}, now.AsX()) })
			add(func() { c.VINSERTI128(operand.U8(1), operand.Mem{Base: p, Disp: 16*g + blockBytes}, now, now) })
			add(func() { c.VPSHUFB(operand.Mem{Base: constants, Disp: swapOffset}, now, now) })
		case g < 8:
			// Word t+3 needs word t, which is still to be computed: what depends
			// on that comes in last.
			add(func() { c.VPALIGNR(operand.U8(8), of(4), of(3), x) })
			add(func() { c.VPSRLDQ(operand.U8(4), of(1), y) })
			add(func() { c.VPXOR(of(4), x, x) })
			add(func() { c.VPXOR(of(2), y, y) })
			add(func() { c.VPXOR(x, y, x) })
			add(func() { c.VPSLLDQ(operand.U8(12), x, y) })
			add(func() { c.VPSRLD(operand.U8(31), x, z) })
			add(func() { c.VPADDD(x, x, x) })
			add(func() { c.VPOR(x, z, x) })
			add(func() { c.VPSRLD(operand.U8(30), y, z) })
			add(func() { c.VPSLLD(operand.U8(2), y, y) })
			add(func() { c.VPXOR(x, z, x) })
			add(func() { c.VPXOR(x, y, now) })
		default:
			// rol 1 of words t-3, t-8, t-14 and t-16 is rol 2 of those at twice
			// the distances, none of which is in this group.
			add(func() { c.VPALIGNR(operand.U8(8), of(2), of(1), x) })
			add(func() { c.VPXOR(of(4), now, now) }) // now is of(8) still
			add(func() { c.VPXOR(of(7), x, x) })
			add(func() { c.VPXOR(x, now, x) })
			add(func() { c.VPSRLD(operand.U8(30), x, y) })
			add(func() { c.VPSLLD(operand.U8(2), x, x) })
			add(func() { c.VPOR(x, y, now) })
		}
		add(func() { c.VPADDD(operand.Mem{Base: constants, Disp: g / 5 * 32}, now, z) })
		add(func() { c.VMOVDQU(z, operand.Mem{Base: words, Disp: 32 * g}) })
	}
	return steps
}
