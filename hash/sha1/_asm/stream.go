package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const blockBytes = 64

// stream is a function that takes a message, or the next part of one, into a
// hash value. The message is in two places: first its whole blocks, where the
// caller has them, and then its end. With one call for both, the hash value stays
// in registers in between.
type stream struct {
	*build.Context
	dst, src, p, left reg.GPVirtual // left: blocks, from p on
}

// newStream starts a function called compress and then the name of the kernel.
// It has one parameter more, the constants of the kernel.
func newStream(c *build.Context, kernel, parameters string, comment ...string) *stream {
	name := "compress" + kernel
	c.Function(name)
	c.Doc(fmt.Sprintf("%s takes blocks of p and then tailBlocks of tail into the hash value src,", name),
		"which is kept as the bytes of a digest, and puts the outcome into dst. dst may be src.")
	c.Pragma("noescape")
	c.SignatureExpr("func(dst, src *[20]byte, p *byte, blocks int, tail *byte, tailBlocks int, " + parameters + ")")
	c.Comment(append([]string{
		"dst, src: 20 bytes, five big-endian words.",
		"p, tail: 64 bytes for each block, at any address.",
	}, comment...)...)
	return &stream{
		Context: c,
		dst:     c.Load(c.Param("dst"), c.GP64()).(reg.GPVirtual),
		src:     c.Load(c.Param("src"), c.GP64()).(reg.GPVirtual),
		p:       c.Load(c.Param("p"), c.GP64()).(reg.GPVirtual),
		left:    c.Load(c.Param("blocks"), c.GP64()).(reg.GPVirtual),
	}
}

// eachBlock adds the loop over the blocks. The code of body must not change p.
func (s *stream) eachBlock(body func()) {
	s.CMPQ(s.left, operand.U8(0))
	s.JEQ(operand.LabelRef("tail"))
	s.Label("block")
	body()
	s.ADDQ(operand.U8(blockBytes), s.p)
	s.DECQ(s.left)
	s.JNZ(operand.LabelRef("block"))
	s.Label("tail")
	next := s.Load(s.Param("tailBlocks"), s.GP64())
	s.MOVQ(s.left, argument(s.Context, "tailBlocks")) // zero: the tail comes only once
	s.MOVQ(next, s.left)
	s.Load(s.Param("tail"), s.p)
	s.CMPQ(s.left, operand.U8(0))
	s.JNE(operand.LabelRef("block"))
}

// argument returns where a parameter is on the stack.
func argument(c *build.Context, name string) operand.Mem {
	basic, err := c.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return basic.Addr
}
