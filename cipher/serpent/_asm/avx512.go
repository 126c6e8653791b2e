package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx512 returns the machine with 4, 8 or 16 lanes. CPUs with fewer ports for
// registers of 512 bits are sooner done with a few blocks in smaller ones.
func avx512(lanes int) Machine {
	var registers []reg.VecPhysical
	for _, r := range []reg.VecPhysical{
		reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7,
		reg.X8, reg.X9, reg.X10, reg.X11, reg.X12, reg.X13, reg.X14, reg.X15,
		reg.X16, reg.X17, reg.X18, reg.X19, reg.X20, reg.X21, reg.X22, reg.X23,
		reg.X24, reg.X25, reg.X26, reg.X27, reg.X28, reg.X29, reg.X30, reg.X31,
	} {
		sized := map[int]reg.Register{4: r.AsX(), 8: r.AsY(), 16: r.AsZ()}[lanes]
		registers = append(registers, sized.(reg.VecPhysical))
	}
	return Machine{
		Name:          "AVX512",
		Registers:     registers,
		PerCycle:      map[int]int{4: 3, 8: 3, 16: 2}[lanes],
		Lanes:         lanes,
		KeyLanes:      1,
		ThreeOperands: true,
		Ternary:       true,
		Rotates:       true,
		KeyOperands:   true,
		Write:         writeAVX512,
		Copy:          func(c *build.Context, from, to reg.Register) { c.VMOVDQA32(from, to) },
		Leave:         func(c *build.Context) { c.VZEROUPPER() },
	}
}

func writeAVX512(c *build.Context, s *Step, dst reg.Register, args []reg.Register, m operand.Mem) {
	x, y, z := arguments(args)
	switch s.Op {
	case Xor:
		c.VPXORD(y, x, dst)
	case Ternary:
		if x != dst {
			c.VMOVDQA32(x, dst)
		}
		c.VPTERNLOGD(operand.U8(s.N), z, y, dst)
	case XorKey:
		c.VPXORD_BCST(m, x, dst)
	case Rotate:
		c.VPROLD(operand.U8(s.N), x, dst)
	case Shift:
		c.VPSLLD(operand.U8(s.N), x, dst)
	case Load:
		c.VMOVDQU32(m, dst)
	case Store:
		c.VMOVDQU32(x, m)
	case UnpackLow32:
		c.VPUNPCKLDQ(y, x, dst)
	case UnpackHigh32:
		c.VPUNPCKHDQ(y, x, dst)
	case UnpackLow64:
		c.VPUNPCKLQDQ(y, x, dst)
	case UnpackHigh64:
		c.VPUNPCKHQDQ(y, x, dst)
	default:
		panic(fmt.Sprintf("no instruction for operation %d", s.Op))
	}
}
