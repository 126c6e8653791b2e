package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const wideBytes = 32

// pairs is the schedule of four chains in registers of eight lanes, two words
// at a time: words 2m and 2m+1 are in the low and in the high half of pair m.
// From word 32 on, a word comes from those 6, 16, 28 and 32 before it, rotated
// by 2: this is the definition put into itself, and needs whole pairs only.
type pairs struct {
	*group
	wide instructions
	list [40]reg.VecVirtual // nil: zeros
}

// Words 14 and 15 of all messages, and word 5.
var (
	lastPair = staticData("lastPair")
	padding5 = staticData("padding5")
)

func writePairsData(c *build.Context) {
	c.StaticGlobal("lastPair")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for lane := range 8 {
		c.AddDatum(4*lane, operand.U32(lane/4*word15))
	}
	c.StaticGlobal("padding5")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for lane := range 4 {
		c.AddDatum(4*lane, operand.U32(word5))
	}
}

// lead is how many rounds before its own a word of the schedule is computed: as
// long as a sum takes to memory and back.
const lead = 8

// writePairedChains adds the kernel for four chains.
func writePairedChains(c *build.Context) {
	w := &vectorWriter{instructions: newAVX512XMM(c), rowBytes: 16}
	w.chains = newChains(c, w.name(), 4, vectorRows*w.rowBytes, 5*w.rowBytes, 64*w.rowBytes, wideBytes,
		"memory: for each half 17 rows of 4 words, one of each chain: five of the state,",
		"five of what the first rounds take from it, a and b rotated by 30, five of the sums;",
		"then five rows of the last outcome.",
		"Registers: a to e, and 32 words of the schedule, two in each. The scratch has sums of",
		"a word and a round constant.",
		"Algorithm: RFC 8018, 5.2, with SHA-1 of FIPS 180-4, 6.1.3.")
	g := newGroup(w, 0, 5)
	g.pairs = newPairs(g)
	for j := range 5 {
		g.move(g.outcome(j), g.words[j])
	}
	g.pairs.join()
	w.eachHalf(func() {
		for i := range 80 {
			if t := i + lead; 16 <= t && t < 80 && t%2 == 0 {
				g.pairs.expand(t)
			}
			g.round(i)
		}
		g.pairs.finish()
	})
	for j := range 5 {
		g.move(g.words[j], g.outcome(j))
	}
	w.leave()
	w.RET()
}

func newPairs(g *group) *pairs {
	p := &pairs{group: g, wide: newAVX512VL(g.Context)}
	for _, m := range []int{0, 1, 2, 7} {
		p.list[m] = p.wide.register()
	}
	p.wide.move(lastPair, p.list[7])
	return p
}

// join adds the pairs of the message, from its words.
func (p *pairs) join() {
	for m := range 3 {
		high := operand.Op(padding5)
		if m < 2 {
			high = p.words[2*m+1]
		}
		p.VINSERTI32X4(operand.U8(1), high, p.words[2*m].(reg.VecVirtual).AsY(), p.list[m])
	}
}

// expand adds words t and t+1 of the schedule, and the sums of them and of the
// constant of their rounds.
func (p *pairs) expand(t int) {
	m := t / 2
	from, rotation := []int{m - 16, m - 14, m - 8, m - 3}, 2
	if t < 32 {
		from, rotation = []int{m - 8, m - 7, m - 4}, 1
	}
	var terms []operand.Op
	for _, n := range from {
		if p.list[n] != nil {
			terms = append(terms, p.list[n])
		}
	}
	if 18 <= t && t < 32 { // words t-3 and t-2
		x := p.wide.register()
		p.VSHUFI64X2(operand.U8(1), p.list[m-1], p.list[m-2], x)
		terms = append(terms, x)
	}
	x := p.wide.register()
	p.wide.xor(terms, 0, x)
	p.wide.rotate(rotation, x, x)
	p.list[m] = x
	sum := p.wide.register()
	p.VPADDD_BCST(constant(p.wide, roundConstants[t/20]), x, sum)
	p.wide.move(sum, p.sums(t))
}

// sums returns where that of word t is.
func (p *pairs) sums(t int) operand.Mem {
	return operand.Mem{Base: p.scratch, Disp: (t - 16) * p.rowBytes}
}

// finish adds what comes after the last round.
func (p *pairs) finish() {
	g := p.group
	for j := range 5 {
		g.add(g.row(rowState+j), g.v[j], g.words[j].(reg.VecVirtual))
	}
	p.join()
	for m := range 2 { // two rows of sums are as long as a pair
		sum := p.wide.register()
		p.VPXORD(g.row(rowSum+2*m), p.list[m], sum)
		p.wide.move(sum, g.row(rowSum+2*m))
	}
	sum := g.register()
	g.VPXORD(g.row(rowSum+4), g.words[4], sum)
	g.move(sum, g.row(rowSum+4))
}
