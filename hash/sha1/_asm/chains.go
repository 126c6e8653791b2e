package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The words that pad a message of 20 bytes behind a block of key (FIPS 180-4,
// 5.1.1): word 5 is a one bit and zeros, word 15 the length of both in bits,
// and those between are zero.
const (
	word5  = 0x80000000
	word15 = (64 + 20) * 8
)

// chains is a function that takes chains of PBKDF2 through iterations. Each
// has two halves, HMAC's inner hash and its outer one, that differ in nothing
// but the state they start from: so the code of one serves both, and turns
// from the memory of one half to that of the other in between. There is a sum
// in either. That of the inner half is never read.
type chains struct {
	*build.Context
	memory, scratch, halves reg.GPVirtual
	half, otherHalf         reg.GPVirtual
}

// memoryWords is what the largest kernel needs.
const memoryWords = 1519

// newChains starts a function called iterate and then the kernel and its chains.
// Its memory consists of halfBytes for each half, outcomeBytes for the outcomes
// of the last iteration, and scratchBytes, with room to start at a multiple of
// align.
func newChains(c *build.Context, kernel string, count, halfBytes, outcomeBytes, scratchBytes, align int, comment ...string) *chains {
	scratchOffset := 2*halfBytes + outcomeBytes
	room := align - 4 // more than scratchBytes
	if scratchOffset+scratchBytes+room > 4*memoryWords {
		panic(fmt.Sprintf("%d chains need %d bytes", count, scratchOffset+scratchBytes+room))
	}
	name := fmt.Sprintf("iterate%sx%d", kernel, count)
	c.Function(name)
	c.Doc(fmt.Sprintf("%s does n > 0 iterations of %d chains.", name, count))
	c.Pragma("noescape")
	c.SignatureExpr(fmt.Sprintf("func(memory *[%d]uint32, n int)", memoryWords))
	c.Comment(append(comment,
		"The scratch is at the end, from the next address on that operands need.",
		"No branch and no address depends on the data.")...)
	s := &chains{
		Context: c,
		memory:  c.Load(c.Param("memory"), c.GP64()).(reg.GPVirtual),
		halves:  c.Load(c.Param("n"), c.GP64()).(reg.GPVirtual),
		scratch: c.GP64(), half: c.GP64(), otherHalf: c.GP64(),
	}
	c.ADDQ(s.halves, s.halves)
	c.LEAQ(operand.Mem{Base: s.memory, Disp: scratchOffset + room}, s.scratch)
	c.ANDQ(operand.I8(-align), s.scratch)
	c.MOVQ(s.memory, s.half)
	c.LEAQ(operand.Mem{Base: s.memory, Disp: halfBytes}, s.otherHalf)
	return s
}

// eachHalf adds the loop over all halves.
func (s *chains) eachHalf(body func()) {
	s.Label("half")
	body()
	next := s.GP64()
	s.MOVQ(s.otherHalf, next)
	s.MOVQ(s.half, s.otherHalf)
	s.MOVQ(next, s.half)
	s.DECQ(s.halves)
	s.JNZ(operand.LabelRef("half"))
}
