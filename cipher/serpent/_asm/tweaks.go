package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// writeTweaks adds the function that computes the tweaks of XTS: products with
// powers of alpha in GF(2^128) modulo x^128 + x^7 + x^2 + x + 1 (IEEE
// 1619-2018, 5.2). The k bits that leave a block at its high end come back as
// their product with x^7 + x^2 + x + 1, of which there are few: they are in a
// register.
func writeTweaks(c *build.Context, m *Machine) {
	v := vectors{m, c}
	dst, tweak, count := v.declare("tweaks", "tweak *[2]uint64",
		fmt.Sprintf("tweaks%s fills vectors > 0 times %d blocks of dst: with tweak, and then each", m.Name, v.blocks()),
		"with the double of the last in GF(2^128), as in XTS.")
	perVector := v.blocks()
	products := v.constant("reduced", func(i int) uint64 {
		return timesReduction(2*i) | timesReduction(2*i+1)<<32
	})
	power := func(i int) uint64 { return uint64(i / 2) } // of alpha, for block i/2 of a vector
	left := v.constant("left", power)
	right := v.constant("right", func(i int) uint64 { return 64 - power(i) })
	mask := reg.K1
	if m.Lanes == 16 {
		all := c.GP32()
		c.MOVL(operand.U32(0x1111), all)
		c.KMOVW(all, mask)
	}
	// carry replaces the high bits of the high half of each block, which are in
	// its low half now, by what they add to the low half.
	carry := func(x reg.VecVirtual) {
		if m.Lanes == 16 {
			c.VPERMD(products, x, mask, x)
			return
		}
		y := v.register()
		c.VPERMD(products, x, y)
		c.VPBLENDD(operand.U8(0x11), y, x, x)
	}
	const swapHalves = 0x4E
	x, high := v.register(), v.register()
	v.broadcast(operand.Mem{Base: tweak}, x)
	c.VPSHUFD(operand.U8(swapHalves), x, high)
	c.VPSRLVQ(right, high, high)
	c.VPSLLVQ(left, x, x)
	carry(high)
	v.xor(high, x, x)
	v.loop(dst, count, x, func() {
		c.VPSHUFD(operand.U8(swapHalves), x, high)
		c.VPSRLQ(operand.U8(64-perVector), high, high)
		c.VPSLLQ(operand.U8(perVector), x, x)
		carry(high)
		v.xor(high, x, x)
	})
}

// timesReduction is the product of two polynomials over GF(2): that of the
// bits of n, and x^7 + x^2 + x + 1.
func timesReduction(n int) uint64 {
	u := uint64(n)
	return u<<7 ^ u<<2 ^ u<<1 ^ u
}

// writeCounters adds the function that counts blocks of CTR.
func writeCounters(c *build.Context, m *Machine) {
	v := vectors{m, c}
	dst, first, count := v.declare("counters", "first *[2]uint64",
		fmt.Sprintf("counters%s fills vectors > 0 times %d blocks of dst with big-endian numbers of 128", m.Name, v.blocks()),
		"bits that count up. The low half of the first is first[0], and does not overflow.")
	reverse := v.constant("reverse", func(i int) uint64 { return []uint64{0x08090a0b0c0d0e0f, 0x0001020304050607}[i%2] })
	numbers := v.constant("numbers", func(i int) uint64 { return uint64((i + 1) % 2 * (i / 2)) })
	step := v.constant("step", func(i int) uint64 { return uint64((i + 1) % 2 * v.blocks()) })
	number, x := v.register(), v.register()
	v.broadcast(operand.Mem{Base: first}, number)
	c.VPADDQ(numbers, number, number)
	c.VPSHUFB(reverse, number, x)
	v.loop(dst, count, x, func() {
		c.VPADDQ(step, number, number)
		c.VPSHUFB(reverse, number, x)
	})
}
