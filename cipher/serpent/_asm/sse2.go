package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var sse2 = Machine{
	Name:      "SSE2",
	Registers: len(xmm),
	Resident:  3,
	PerCycle:  3,
	Lanes:     4,
	WordBytes: 16,
	Write:     writeSSE2,
	Copy:      func(c *build.Context, m Move) { c.MOVO(xmm[m.From], xmm[m.To]) },
}

// sse2Kernels are the sizes for long runs, for their ends and for short ones.
func sse2Kernels(s *Sboxes) (kernels []Kernel) {
	for _, leads := range [][]int{{0}, {0, 1}, {0, 1, 2, 3}} {
		inOrder := len(leads) > 2
		kernels = append(kernels,
			Kernel{Machine: sse2, Half: EncryptHalf(s), Leads: leads, InOrder: inOrder},
			Kernel{Machine: sse2, Half: DecryptHalf(s), Leads: leads, InOrder: inOrder, Decrypt: true})
	}
	return kernels
}

var xmm = [...]reg.VecPhysical{
	reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7,
	reg.X8, reg.X9, reg.X10, reg.X11, reg.X12, reg.X13, reg.X14, reg.X15,
}

func writeSSE2(c *build.Context, i Instruction, m operand.Mem) {
	if i.Op == Store {
		c.MOVOU(xmm[i.X], m)
		return
	}
	dst := xmm[i.Dst]
	if i.X >= 0 && i.X != i.Dst {
		c.MOVO(xmm[i.X], dst)
	}
	var y reg.VecPhysical
	if i.Y >= 0 {
		y = xmm[i.Y]
	}
	switch i.Op {
	case And:
		c.PAND(y, dst)
	case Or:
		c.POR(y, dst)
	case Xor:
		c.PXOR(y, dst)
	case AndNot:
		c.PANDN(y, dst)
	case Shift:
		if i.N == 1 {
			c.PADDL(dst, dst) // runs on more ports than a shift
		} else {
			c.PSLLL(operand.U8(i.N), dst)
		}
	case ShiftRight:
		c.PSRLL(operand.U8(i.N), dst)
	case Key, Load:
		// Not an operand of the PXOR that follows: the address is not aligned.
		c.MOVOU(m, dst)
	case Zero:
		c.PXOR(dst, dst)
	case UnpackLow32:
		c.PUNPCKLLQ(y, dst)
	case UnpackHigh32:
		c.PUNPCKHLQ(y, dst)
	case UnpackLow64:
		c.PUNPCKLQDQ(y, dst)
	case UnpackHigh64:
		c.PUNPCKHQDQ(y, dst)
	default:
		panic(fmt.Sprintf("no instruction for operation %d", i.Op))
	}
}
