package main

import (
	"slices"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// instructions add operations on registers of one kind. Where an operand may be
// memory, that is at a multiple of its size.
type instructions interface {
	name() string
	registerBytes() int
	register() reg.VecVirtual
	constantBytes() int // of a constant in static memory
	// unaligned returns an operand for memory at any address.
	unaligned(m operand.Mem) operand.Op
	move(from, to operand.Op)
	add(x operand.Op, y, dst reg.VecVirtual)
	addConstant(value uint32, dst reg.VecVirtual)
	// addFunction adds to e the function of one of the four groups of rounds, and
	// returns where b is then, rotated by 30.
	addFunction(group int, b, c, d, e reg.VecVirtual) (rotated reg.VecVirtual)
	addRotated5(a, e reg.VecVirtual)
	rotate(n int, x, dst reg.VecVirtual)
	// xor has at least two terms, a constant of not 0 among them; dst may be
	// the first.
	xor(terms []operand.Op, constant uint32, dst reg.VecVirtual)
	// leave adds what has to come before the return.
	leave()
}

// constantTable has the words that are in static memory.
var constantTable = append(slices.Clone(roundConstants[:]),
	roundConstants[0]+word5, roundConstants[0]+word15, word5, word15)

func constantName(i instructions) string { return "constants" + i.name() }

func writeConstants(c *build.Context, i instructions) {
	copies := i.constantBytes() / 4
	c.StaticGlobal(constantName(i))
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for n, value := range constantTable {
		for m := range copies {
			c.AddDatum(4*(n*copies+m), operand.U32(value))
		}
	}
}

func constant(i instructions, value uint32) operand.Mem {
	return staticData(constantName(i)).Offset(i.constantBytes() * slices.Index(constantTable, value))
}

// twoOperands are SSE2 and AVX2.
type twoOperands struct {
	*build.Context
	wide bool
}

func newSSE2(c *build.Context) instructions { return &twoOperands{c, false} }
func newAVX2(c *build.Context) instructions { return &twoOperands{c, true} }

func (o *twoOperands) name() string {
	if o.wide {
		return "AVX2"
	}
	return "SSE2"
}

func (o *twoOperands) registerBytes() int {
	if o.wide {
		return 32
	}
	return 16
}

func (o *twoOperands) constantBytes() int { return o.registerBytes() }

func (o *twoOperands) register() reg.VecVirtual {
	if o.wide {
		return o.YMM()
	}
	return o.XMM()
}

func (o *twoOperands) move(from, to operand.Op) {
	aligned := !operand.IsMem(from) && !operand.IsMem(to)
	switch {
	case o.wide:
		o.VMOVDQU(from, to)
	case aligned:
		o.MOVO(from, to)
	default:
		o.MOVOU(from, to)
	}
}

func (o *twoOperands) unaligned(m operand.Mem) operand.Op {
	if o.wide {
		return m
	}
	x := o.register()
	o.MOVOU(m, x)
	return x
}

// commutative adds an operation that SSE2 leaves in one of its operands.
func (o *twoOperands) commutative(x operand.Op, y, dst reg.VecVirtual, wide func(x, y, dst operand.Op), narrow func(x, dst operand.Op)) {
	if o.wide {
		wide(x, y, dst)
		return
	}
	if x == dst {
		x, y = y, dst
	}
	if y != dst {
		o.move(y, dst)
	}
	narrow(x, dst)
}

func (o *twoOperands) add(x operand.Op, y, dst reg.VecVirtual) {
	o.commutative(x, y, dst, func(x, y, dst operand.Op) { o.VPADDD(x, y, dst) }, o.PADDL)
}
func (o *twoOperands) xor2(x operand.Op, y, dst reg.VecVirtual) {
	o.commutative(x, y, dst, o.VPXOR, o.PXOR)
}
func (o *twoOperands) and(x operand.Op, y, dst reg.VecVirtual) {
	o.commutative(x, y, dst, o.VPAND, o.PAND)
}
func (o *twoOperands) or(x operand.Op, y, dst reg.VecVirtual) {
	o.commutative(x, y, dst, o.VPOR, o.POR)
}

func (o *twoOperands) shift(left int, x, dst reg.VecVirtual) {
	switch {
	case left == 1:
		o.add(x, x, dst) // runs on more ports than a shift
	case o.wide && left > 0:
		o.VPSLLD(operand.U8(left), x, dst)
	case o.wide:
		o.VPSRLD(operand.U8(-left), x, dst)
	default:
		if x != dst {
			o.move(x, dst)
		}
		if left > 0 {
			o.PSLLL(operand.U8(left), dst)
		} else {
			o.PSRLL(operand.U8(-left), dst)
		}
	}
}

func (o *twoOperands) addConstant(value uint32, dst reg.VecVirtual) {
	o.add(constant(o, value), dst, dst)
}

func (o *twoOperands) addFunction(group int, b, c, d, e reg.VecVirtual) (rotated reg.VecVirtual) {
	x := o.register()
	o.xor2(c, d, x)
	switch group {
	case 0: // choose: d ^ b & (c ^ d)
		o.and(b, x, x)
		o.xor2(d, x, x)
	case 1, 3: // parity: b ^ c ^ d
		o.xor2(b, x, x)
	case 2: // majority: c & d + b & (c ^ d)
		y := o.register()
		o.and(c, d, y)
		o.add(y, e, e)
		o.and(b, x, x)
	}
	o.add(x, e, e)
	o.rotate(30, b, b)
	return b
}

func (o *twoOperands) addRotated5(a, e reg.VecVirtual) {
	x, y := o.register(), o.register()
	o.shift(5, a, x)
	o.shift(5-32, a, y)
	o.or(x, y, y)
	o.add(y, e, e)
}

func (o *twoOperands) rotate(n int, x, dst reg.VecVirtual) {
	y := o.register()
	o.shift(n, x, y)
	o.shift(n-32, x, dst)
	o.or(y, dst, dst)
}

func (o *twoOperands) xor(terms []operand.Op, value uint32, dst reg.VecVirtual) {
	if value != 0 {
		terms = slices.Insert(slices.Clone(terms), 1, operand.Op(constant(o, value)))
	}
	if terms[0] != dst {
		o.move(terms[0], dst)
	}
	for _, x := range terms[1:] {
		o.xor2(x, dst, dst)
	}
}

func (o *twoOperands) leave() {
	if o.wide {
		o.VZEROUPPER()
	}
}

// threeOperands is AVX-512, with registers of 16 or, with its VL, of 8 or 4
// words.
type threeOperands struct {
	*build.Context
	bytes int
}

func newAVX512(c *build.Context) instructions    { return &threeOperands{c, 64} }
func newAVX512VL(c *build.Context) instructions  { return &threeOperands{c, 32} }
func newAVX512XMM(c *build.Context) instructions { return &threeOperands{c, 16} }

func (o *threeOperands) name() string       { return "AVX512" }
func (o *threeOperands) registerBytes() int { return o.bytes }
func (o *threeOperands) constantBytes() int { return 4 }
func (o *threeOperands) register() reg.VecVirtual {
	switch o.bytes {
	case 64:
		return o.ZMM()
	case 32:
		return o.YMM()
	}
	return o.XMM()
}

func (o *threeOperands) unaligned(m operand.Mem) operand.Op { return m }
func (o *threeOperands) move(from, to operand.Op)           { o.VMOVDQU32(from, to) }
func (o *threeOperands) add(x operand.Op, y, dst reg.VecVirtual) {
	o.VPADDD(x, y, dst)
}
func (o *threeOperands) addConstant(value uint32, dst reg.VecVirtual) {
	o.VPADDD_BCST(constant(o, value), dst, dst)
}

// Truth tables of three operands, see VPTERNLOGD.
var truthTables = [4]uint8{choose, parity, majority, parity}

const (
	choose   = 0xCA
	parity   = 0x96
	majority = 0xE8
)

func (o *threeOperands) addFunction(group int, b, c, d, e reg.VecVirtual) (rotated reg.VecVirtual) {
	rotated = o.register()
	o.rotate(30, b, rotated)
	o.VPTERNLOGD(operand.U8(truthTables[group]), d, c, b)
	o.add(b, e, e)
	return rotated
}

func (o *threeOperands) addRotated5(a, e reg.VecVirtual) {
	x := o.register()
	o.rotate(5, a, x)
	o.add(x, e, e)
}

func (o *threeOperands) rotate(n int, x, dst reg.VecVirtual) { o.VPROLD(operand.U8(n), x, dst) }

func (o *threeOperands) xor(terms []operand.Op, value uint32, dst reg.VecVirtual) {
	if terms[0] != dst {
		o.move(terms[0], dst)
	}
	terms = terms[1:]
	if value != 0 {
		if len(terms) > 0 {
			o.VPTERNLOGD_BCST(operand.U8(parity), constant(o, value), o.inRegister(terms[0]), dst)
			terms = terms[1:]
		} else {
			o.VPXORD_BCST(constant(o, value), dst, dst)
		}
	}
	for ; len(terms) >= 2; terms = terms[2:] {
		x, y := terms[0], terms[1]
		if operand.IsMem(y) {
			x, y = y, x
		}
		o.VPTERNLOGD(operand.U8(parity), x, o.inRegister(y), dst)
	}
	if len(terms) == 1 {
		o.VPXORD(terms[0], dst, dst)
	}
}

func (o *threeOperands) inRegister(x operand.Op) operand.Op {
	if operand.IsMem(x) {
		y := o.register()
		o.move(x, y)
		return y
	}
	return x
}

func (o *threeOperands) leave() { o.VZEROUPPER() }
