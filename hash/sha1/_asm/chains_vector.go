package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The memory of the chains in one half, in rows of one word of each chain.
const (
	rowState   = 0  // a to e, from which the half starts
	rowStart   = 5  // what rounds 0 to 4 take from the state alone, see round
	rowRotated = 10 // a and b, rotated by 30
	rowSum     = 12 // of the outcomes, five
	vectorRows = 17
)

// vectorKernel describes a function for chains that have a lane each in
// registers, which otherwise computes just as the definition does.
type vectorKernel struct {
	instructions  func(c *build.Context) instructions
	groups        int // registers for the lanes of each word
	wordRegisters int // for words of the schedule of each group, from 0 on
}

// vectorChains returns what is in a file of such kernels.
func vectorChains(kernels ...vectorKernel) []func(c *build.Context) {
	list := []func(c *build.Context){
		func(c *build.Context) { writeConstants(c, kernels[0].instructions(c)) },
	}
	for _, k := range kernels {
		list = append(list, k.write)
	}
	return list
}

func (k vectorKernel) write(c *build.Context) {
	w := &vectorWriter{instructions: k.instructions(c)}
	width := w.registerBytes()
	w.rowBytes = k.groups * width
	lanes := w.rowBytes / 4
	w.chains = newChains(c, w.name(), lanes, vectorRows*w.rowBytes, 5*w.rowBytes, (16-k.wordRegisters)*w.rowBytes, width,
		fmt.Sprintf("memory: for each half 17 rows of %d words, one of each chain: five of the state,", lanes),
		"five of what the first rounds take from it, a and b rotated by 30, five of the sums;",
		"then five rows of the last outcome.",
		fmt.Sprintf("Registers: a to e and %d words of the schedule for every %d chains; the other words", k.wordRegisters, width/4),
		"are in the scratch.",
		"Algorithm: RFC 8018, 5.2, with SHA-1 of FIPS 180-4, 6.1.3.")
	for n := range k.groups {
		w.groups = append(w.groups, newGroup(w, n, k.wordRegisters))
	}
	w.write()
}

type vectorWriter struct {
	*chains
	instructions
	rowBytes int
	groups   []*group
}

func (w *vectorWriter) write() {
	each := func(do func(g *group)) {
		for _, g := range w.groups {
			do(g)
		}
	}
	for j := range 5 {
		each(func(g *group) { g.copy(g.outcome(j), g.words[j]) })
	}
	w.eachHalf(func() {
		for i := range 80 {
			each(func(g *group) { g.round(i) })
		}
		for j := range 5 {
			each(func(g *group) { g.finish(j) })
		}
	})
	for j := range 5 {
		each(func(g *group) { g.copy(g.words[j], g.outcome(j)) })
	}
	w.leave()
	w.RET()
}

// group is as many chains as a register has lanes.
type group struct {
	*vectorWriter
	n     int
	v     [5]reg.VecVirtual // a to e, which change names in each round
	words [16]operand.Op    // the rolling schedule, of which pairs, if there, has all but the message
	pairs *pairs
}

func newGroup(w *vectorWriter, n, wordRegisters int) *group {
	g := &group{vectorWriter: w, n: n}
	for i := range g.v {
		g.v[i] = w.register()
	}
	for i := range g.words {
		if i < wordRegisters {
			g.words[i] = w.register()
		} else {
			g.words[i] = operand.Mem{Base: w.scratch, Disp: (i-wordRegisters)*w.rowBytes + n*w.registerBytes()}
		}
	}
	return g
}

func (g *group) row(row int) operand.Mem {
	return operand.Mem{Base: g.half, Disp: row*g.rowBytes + g.n*g.registerBytes()}
}

func (g *group) outcome(j int) operand.Mem {
	return operand.Mem{Base: g.memory, Disp: (2*vectorRows+j)*g.rowBytes + g.n*g.registerBytes()}
}

// copy goes through a register from memory to memory.
func (g *group) copy(from, to operand.Op) {
	if operand.IsMem(from) && operand.IsMem(to) {
		x := g.register()
		g.move(from, x)
		from = x
	}
	g.move(from, to)
}

// word returns word i of the schedule: where it is, or its value if that is the
// same for all messages.
func (g *group) word(i int) (at operand.Op, value uint32) {
	switch {
	case i == 5:
		return nil, word5
	case i == 15:
		return nil, word15
	case 5 < i && i < 15:
		return nil, 0
	}
	return g.words[i%16], 0
}

// round adds a round. In the first of them, what does not depend on a word of
// the message is the same in all iterations, and is taken from the memory: all
// of round 0 but the word, of round 1 all but the word and the rotation of a,
// and of rounds 2 to 4 the sum of e and the constant.
func (g *group) round(i int) {
	a, b, c, d, e := g.v[(80-i)%5], g.v[(81-i)%5], g.v[(82-i)%5], g.v[(83-i)%5], g.v[(84-i)%5]
	k := roundConstants[i/20]
	switch {
	case i < 5:
		g.sum(g.row(rowStart+i), g.words[i], e)
	case i < 16:
		_, value := g.word(i)
		g.addConstant(value+k, e)
	case g.pairs != nil:
		g.add(g.pairs.sums(i), e, e)
	default:
		g.add(g.expand(i), e, e)
		g.addConstant(k, e)
	}
	if i == 2 {
		g.move(g.row(rowRotated), c)
		g.move(g.row(rowRotated+1), d)
	}
	if i >= 2 {
		g.v[(81-i)%5] = g.addFunction(i/20, b, c, d, e)
	}
	if i >= 1 {
		g.addRotated5(a, e)
	}
}

// sum adds the sum of two words, of which the first is in the memory.
func (g *group) sum(x operand.Mem, y operand.Op, dst reg.VecVirtual) {
	if operand.IsMem(y) {
		g.move(y, dst)
		y = dst
	}
	g.add(g.unaligned(x), y.(reg.VecVirtual), dst)
}

// expand adds word i of the schedule, and returns the register that it is in.
func (g *group) expand(i int) reg.VecVirtual {
	var terms []operand.Op
	var constant uint32
	for _, j := range []int{i - 16, i - 14, i - 8, i - 3} { // the latest last
		at, value := g.word(j)
		if at != nil {
			terms = append(terms, at)
		}
		constant ^= value
	}
	x, kept := g.words[i%16].(reg.VecVirtual)
	if !kept {
		x = g.register()
	}
	g.xor(terms, constant, x)
	g.rotate(1, x, x)
	if !kept {
		g.move(x, g.words[i%16])
	}
	return x
}

// finish adds what comes after the last round, for one of a to e.
func (g *group) finish(j int) {
	x := g.v[j]
	g.add(g.unaligned(g.row(rowState+j)), x, x)
	g.move(x, g.words[j])
	sum := g.register()
	g.move(g.row(rowSum+j), sum)
	g.xor([]operand.Op{sum, x}, 0, sum)
	g.move(sum, g.row(rowSum+j))
}
