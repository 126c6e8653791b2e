package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lineBlocks is how many blocks of a lane gather and scatter move at once: a
// line of the cache, as lanes that are a power of two apart push each other
// out of it.
const lineBlocks = 4

// writeGather adds the functions that bring the next blocks of many sectors
// together, to encrypt them side by side, and back.
func writeGather(c *build.Context) {
	move := func(name string, doc []string, step func(line, row operand.Mem, x reg.VecVirtual)) {
		c.Function(name)
		c.Doc(doc...)
		c.Pragma("noescape")
		c.SignatureExpr("func(rows *byte, lines *byte, rowBytes, sectorBytes, lanes int)")
		rows := c.Load(c.Param("rows"), c.GP64())
		lines := c.Load(c.Param("lines"), c.GP64())
		rowBytes := c.Load(c.Param("rowBytes"), c.GP64())
		sectorBytes := c.Load(c.Param("sectorBytes"), c.GP64())
		lanes := c.Load(c.Param("lanes"), c.GP64())
		thirdRow := c.GP64()
		c.Label("lane")
		c.LEAQ(operand.Mem{Base: rows, Index: rowBytes, Scale: 2}, thirdRow)
		for i, row := range []operand.Mem{
			{Base: rows}, {Base: rows, Index: rowBytes, Scale: 1},
			{Base: thirdRow}, {Base: thirdRow, Index: rowBytes, Scale: 1},
		} {
			step(operand.Mem{Base: lines, Disp: blockBytes * i}, row, c.XMM())
		}
		c.ADDQ(operand.U8(blockBytes), rows)
		c.ADDQ(sectorBytes, lines)
		c.DECQ(lanes)
		c.JNZ(operand.LabelRef("lane"))
		c.RET()
	}
	move("gather", []string{
		"gather copies the first four blocks of each of lanes > 0 sectors, which are",
		"sectorBytes apart, each into the row of its own, rowBytes apart.",
	}, func(line, row operand.Mem, x reg.VecVirtual) {
		c.MOVOU(line, x)
		c.MOVOU(x, row)
	})
	move("scatter", []string{"scatter is the inverse of gather."}, func(line, row operand.Mem, x reg.VecVirtual) {
		c.MOVOU(row, x)
		c.MOVOU(x, line)
	})
}

// vectors are registers of m in virtual form, with what differs by their size.
type vectors struct {
	*Machine
	c *build.Context
}

func (v vectors) register() reg.VecVirtual {
	if v.Lanes == 16 {
		return v.c.ZMM()
	}
	return v.c.YMM()
}

// blocks is how many blocks a register holds.
func (v vectors) blocks() int { return v.itemBytes() / blockBytes }

// constant returns a register that holds quadwords.
func (v vectors) constant(name string, quads func(i int) uint64) reg.VecVirtual {
	m := v.c.StaticGlobal(name + v.Name)
	v.c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range v.itemBytes() / 8 {
		v.c.AddDatum(8*i, operand.U64(quads(i)))
	}
	x := v.register()
	v.move(m, x)
	return x
}

// move adds the copy between a register and memory at any address.
func (v vectors) move(from, to operand.Op) {
	if v.Lanes == 16 {
		v.c.VMOVDQU64(from, to)
	} else {
		v.c.VMOVDQU(from, to)
	}
}

// broadcast adds the load of a block into all 128-bit lanes.
func (v vectors) broadcast(m operand.Mem, x reg.VecVirtual) {
	if v.Lanes == 16 {
		v.c.VBROADCASTI64X2(m, x)
	} else {
		v.c.VBROADCASTI128(m, x)
	}
}

func (v vectors) xor(x, y, dst reg.VecVirtual) {
	if v.Lanes == 16 {
		v.c.VPXORQ(x, y, dst)
	} else {
		v.c.VPXOR(x, y, dst)
	}
}

// declare begins a function that fills vectors of blocks, and returns its
// parameters.
func (v vectors) declare(name, from string, doc ...string) (dst, first, count reg.Register) {
	c := v.c
	c.Function(name + v.Name)
	c.Doc(doc...)
	c.Pragma("noescape")
	c.SignatureExpr("func(dst *byte, " + from + ", vectors int)")
	return c.Load(c.ParamIndex(0), c.GP64()), c.Load(c.ParamIndex(1), c.GP64()), c.Load(c.ParamIndex(2), c.GP64())
}

// loop adds the stores of count vectors, with step between two of them.
func (v vectors) loop(dst, count reg.Register, x reg.VecVirtual, step func()) {
	c := v.c
	c.JMP(operand.LabelRef("store"))
	c.Label("next")
	step()
	c.ADDQ(operand.I32(v.itemBytes()), dst)
	c.Label("store")
	v.move(x, operand.Mem{Base: dst})
	c.DECQ(count)
	c.JNZ(operand.LabelRef("next"))
	c.VZEROUPPER()
	c.RET()
}
