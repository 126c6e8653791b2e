package main

import (
	"fmt"

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
// together, to encrypt them side by side, and back: some sectors at a time, by
// moving the four items of a number of sources to as many destinations.
func writeGather(c *build.Context, suffix string, sectors int, move func(from, to [lineBlocks]operand.Mem)) {
	write := func(name string, doc []string, moveLines func(lines, rows [lineBlocks]operand.Mem)) {
		c.Function(name + suffix)
		c.Doc(doc...)
		c.Pragma("noescape")
		c.SignatureExpr("func(rows *byte, lines *byte, rowBytes, sectorBytes, lanes int)")
		rows := c.Load(c.Param("rows"), c.GP64())
		lines := c.Load(c.Param("lines"), c.GP64())
		rowBytes := c.Load(c.Param("rowBytes"), c.GP64())
		sectorBytes := c.Load(c.Param("sectorBytes"), c.GP64())
		lanes := c.Load(c.Param("lanes"), c.GP64())
		c.Label("next")
		thirdRow := c.GP64()
		c.LEAQ(operand.Mem{Base: rows, Index: rowBytes, Scale: 2}, thirdRow)
		row := [lineBlocks]operand.Mem{
			{Base: rows}, {Base: rows, Index: rowBytes, Scale: 1},
			{Base: thirdRow}, {Base: thirdRow, Index: rowBytes, Scale: 1},
		}
		var line [lineBlocks]operand.Mem
		if sectors == 1 {
			for i := range line {
				line[i] = operand.Mem{Base: lines, Disp: blockBytes * i}
			}
			moveLines(line, row)
			c.ADDQ(sectorBytes, lines)
		} else {
			third := c.GP64()
			c.LEAQ(operand.Mem{Base: lines, Index: sectorBytes, Scale: 2}, third)
			moveLines([lineBlocks]operand.Mem{
				{Base: lines}, {Base: lines, Index: sectorBytes, Scale: 1},
				{Base: third}, {Base: third, Index: sectorBytes, Scale: 1},
			}, row)
			c.LEAQ(operand.Mem{Base: third, Index: sectorBytes, Scale: 2}, lines)
		}
		c.ADDQ(operand.I32(blockBytes*sectors), rows)
		c.SUBQ(operand.U8(sectors), lanes)
		c.JNZ(operand.LabelRef("next"))
		if sectors > 1 {
			c.VZEROUPPER()
		}
		c.RET()
	}
	many := "lanes > 0"
	if sectors > 1 {
		many = fmt.Sprintf("lanes, a multiple of %d,", sectors)
	}
	write("gather", []string{
		fmt.Sprintf("gather%s copies the first four blocks of each of %s sectors, which are", suffix, many),
		"sectorBytes apart, each into the row of its own, rowBytes apart.",
	}, move)
	write("scatter", []string{fmt.Sprintf("scatter%s is the inverse of gather%s.", suffix, suffix)},
		func(line, row [lineBlocks]operand.Mem) { move(row, line) })
}

// moveBlocks moves the blocks of one sector.
func moveBlocks(c *build.Context) func(from, to [lineBlocks]operand.Mem) {
	return func(from, to [lineBlocks]operand.Mem) {
		for i := range from {
			x := c.XMM()
			c.MOVOU(from[i], x)
			c.MOVOU(x, to[i])
		}
	}
}

// transposeBlocks moves block i of item j to block j of item i, for items of
// four blocks.
func transposeBlocks(c *build.Context) func(from, to [lineBlocks]operand.Mem) {
	return func(from, to [lineBlocks]operand.Mem) {
		var x [lineBlocks]reg.VecVirtual
		for i := range x {
			x[i] = c.ZMM()
			c.VMOVDQU64(from[i], x[i])
		}
		shuffle := func(control int, x, y reg.VecVirtual) reg.VecVirtual {
			z := c.ZMM()
			c.VSHUFI64X2(operand.U8(control), y, x, z)
			return z
		}
		const lowHalves, highHalves, even, odd = 0x44, 0xEE, 0x88, 0xDD
		low0, low1 := shuffle(lowHalves, x[0], x[1]), shuffle(lowHalves, x[2], x[3])
		high0, high1 := shuffle(highHalves, x[0], x[1]), shuffle(highHalves, x[2], x[3])
		c.VMOVDQU64(shuffle(even, low0, low1), to[0])
		c.VMOVDQU64(shuffle(odd, low0, low1), to[1])
		c.VMOVDQU64(shuffle(even, high0, high1), to[2])
		c.VMOVDQU64(shuffle(odd, high0, high1), to[3])
	}
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
