package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var avx2 = Machine{
	Name:          "AVX2",
	Registers:     ymm,
	PerCycle:      3,
	Lanes:         8,
	KeyLanes:      8,
	ThreeOperands: true,
	KeyOperands:   true,
	Write:         writeAVX2,
	Copy:          func(c *build.Context, from, to reg.Register) { c.VMOVDQA(from, to) },
	Leave:         func(c *build.Context) { c.VZEROUPPER() },
}

var ymm = []reg.VecPhysical{
	reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
	reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
}

func writeAVX2(c *build.Context, s *Step, dst reg.Register, args []reg.Register, m operand.Mem) {
	x, y, _ := arguments(args)
	switch s.Op {
	case And:
		c.VPAND(y, x, dst)
	case Or:
		c.VPOR(y, x, dst)
	case Xor:
		c.VPXOR(y, x, dst)
	case AndNot:
		c.VPANDN(y, x, dst)
	case XorKey:
		c.VPXOR(m, x, dst)
	case Shift:
		if s.N == 1 {
			c.VPADDD(x, x, dst) // runs on more ports than a shift
		} else {
			c.VPSLLD(operand.U8(s.N), x, dst)
		}
	case ShiftRight:
		c.VPSRLD(operand.U8(s.N), x, dst)
	case Load:
		c.VMOVDQU(m, dst)
	case Store:
		c.VMOVDQU(x, m)
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
