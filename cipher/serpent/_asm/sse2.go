package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var sse2 = Machine{
	Name:      "SSE2",
	Registers: xmm,
	PerCycle:  3,
	Lanes:     4,
	KeyLanes:  4,
	Write:     writeSSE2,
	Copy:      func(c *build.Context, from, to reg.Register) { c.MOVO(from, to) },
}

var xmm = []reg.VecPhysical{
	reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7,
	reg.X8, reg.X9, reg.X10, reg.X11, reg.X12, reg.X13, reg.X14, reg.X15,
}

func writeSSE2(c *build.Context, s *Step, dst reg.Register, args []reg.Register, m operand.Mem) {
	x, y, _ := arguments(args)
	if x != nil && dst != nil && x != dst {
		c.MOVO(x, dst)
	}
	switch s.Op {
	case And:
		c.PAND(y, dst)
	case Or:
		c.POR(y, dst)
	case Xor:
		c.PXOR(y, dst)
	case AndNot:
		c.PANDN(y, dst)
	case Shift:
		if s.N == 1 {
			c.PADDL(dst, dst) // runs on more ports than a shift
		} else {
			c.PSLLL(operand.U8(s.N), dst)
		}
	case ShiftRight:
		c.PSRLL(operand.U8(s.N), dst)
	case Key, Load:
		// Not an operand of the PXOR that follows: the address is not aligned.
		c.MOVOU(m, dst)
	case Store:
		c.MOVOU(x, m)
	case UnpackLow32:
		c.PUNPCKLLQ(y, dst)
	case UnpackHigh32:
		c.PUNPCKHLQ(y, dst)
	case UnpackLow64:
		c.PUNPCKLQDQ(y, dst)
	case UnpackHigh64:
		c.PUNPCKHQDQ(y, dst)
	default:
		panic(fmt.Sprintf("no instruction for operation %d", s.Op))
	}
}
