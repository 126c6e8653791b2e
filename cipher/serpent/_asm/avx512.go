package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var avx512 = Machine{
	Name:          "AVX512",
	Registers:     len(zmm),
	PerCycle:      2,
	Lanes:         16,
	KeyLanes:      1,
	ThreeOperands: true,
	Ternary:       true,
	Rotates:       true,
	KeyOperands:   true,
	Write:         writeAVX512,
	Copy:          func(c *build.Context, m Move) { c.VMOVDQA32(zmm[m.From], zmm[m.To]) },
	Leave:         func(c *build.Context) { c.VZEROUPPER() },
}

var zmm = [...]reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

func writeAVX512(c *build.Context, i Instruction, m operand.Mem) {
	if i.Op == Store {
		c.VMOVDQU32(zmm[i.Args[0]], m)
		return
	}
	dst := zmm[i.Dst]
	var args [3]reg.VecPhysical
	for j, r := range i.Args {
		args[j] = zmm[r]
	}
	x, y, z := args[0], args[1], args[2]
	switch i.Op {
	case Xor:
		c.VPXORD(y, x, dst)
	case Ternary:
		if x != dst {
			c.VMOVDQA32(x, dst)
		}
		c.VPTERNLOGD(operand.U8(i.N), z, y, dst)
	case XorKey:
		c.VPXORD_BCST(m, x, dst)
	case Rotate:
		c.VPROLD(operand.U8(i.N), x, dst)
	case Shift:
		c.VPSLLD(operand.U8(i.N), x, dst)
	case Load:
		c.VMOVDQU32(m, dst)
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
