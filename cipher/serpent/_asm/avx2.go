package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var avx2 = Machine{
	Name:          "AVX2",
	Registers:     len(ymm),
	PerCycle:      3,
	Lanes:         8,
	KeyLanes:      8,
	ThreeOperands: true,
	KeyOperands:   true,
	Write:         writeAVX2,
	Copy:          func(c *build.Context, m Move) { c.VMOVDQA(ymm[m.From], ymm[m.To]) },
	Leave:         func(c *build.Context) { c.VZEROUPPER() },
}

var ymm = [...]reg.VecPhysical{
	reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
	reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
}

func writeAVX2(c *build.Context, i Instruction, m operand.Mem) {
	if i.Op == Store {
		c.VMOVDQU(ymm[i.Args[0]], m)
		return
	}
	dst := ymm[i.Dst]
	var x, y reg.VecPhysical
	if len(i.Args) > 0 {
		x = ymm[i.Args[0]]
	}
	if len(i.Args) > 1 {
		y = ymm[i.Args[1]]
	}
	switch i.Op {
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
		if i.N == 1 {
			c.VPADDD(x, x, dst) // runs on more ports than a shift
		} else {
			c.VPSLLD(operand.U8(i.N), x, dst)
		}
	case ShiftRight:
		c.VPSRLD(operand.U8(i.N), x, dst)
	case Load:
		c.VMOVDQU(m, dst)
	case UnpackLow32:
		c.VPUNPCKLDQ(y, x, dst)
	case UnpackHigh32:
		c.VPUNPCKHDQ(y, x, dst)
	case UnpackLow64:
		c.VPUNPCKLQDQ(y, x, dst)
	case UnpackHigh64:
		c.VPUNPCKHQDQ(y, x, dst)
	default:
		panic(fmt.Sprintf("no instruction for operation %d", i.Op))
	}
}
