package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The memory of a chain in one half, in rows of a register each: four words,
// the first of them in the highest place.
const (
	rowABCD    = iota // the state from which the half starts
	rowE              // in the first word, the others zero
	rowPadded         // as rowE, but with the padding of a message in the second
	rowSumABCD        // of the outcomes
	rowSumE           // in the first word
	chainRows
)

const (
	rowBytes      = 16
	maxChains     = 4 // the memory has room for
	shaniHalf     = maxChains * chainRows * rowBytes
	shaniOutcomes = 2 * shaniHalf
)

// Words 12 to 15 and 8 to 11 of each message.
var (
	shaniPadding = staticData("shaniPadding")
	shaniZero    = staticData("shaniZero")
)

func staticData(name string) operand.Mem {
	return operand.NewDataAddr(operand.NewStaticSymbol(name), 0)
}

func writeSHANIChainsData(c *build.Context) {
	for _, m := range []struct {
		name string
		last uint64 // in the low half
	}{{"shaniPadding", word15}, {"shaniZero", 0}} {
		c.StaticGlobal(m.name)
		c.DataAttributes(attr.RODATA | attr.NOPTR)
		c.AddDatum(0, operand.U64(m.last))
		c.AddDatum(8, operand.U64(0))
	}
}

// writeSHANIChains adds the kernel for a number of chains at the same time, as
// one alone waits for its own results most of the time. An instruction takes
// the words of a message from where the outcome of the half before is: A to D
// are its words 0 to 3, and E, with the padding, words 4 to 7.
func writeSHANIChains(count int) func(c *build.Context) {
	return func(c *build.Context) {
		s := newChains(c, "SHANI", count, shaniHalf, maxChains*2*rowBytes, maxChains*4*rowBytes, rowBytes,
			"memory: for each half and chain five rows of 16 bytes: ABCD, E, E and padding, sums of",
			"ABCD and E; then for each chain two rows, ABCD and E with padding, of the last outcome.",
			"Registers: for each chain ABCD, E and the last four words of the schedule. The twelve",
			"words before are in the scratch.",
			"Algorithm: RFC 8018, 5.2, with SHA-1 as in compressSHANI.")
		(&shaniWriter{chains: s}).write(count)
	}
}

type shaniWriter struct {
	*chains
	lanes []shaniLane
}

// shaniLane is a chain with its registers.
type shaniLane struct {
	w             *shaniWriter
	n             int
	abcd, e, last reg.VecVirtual
}

func (w *shaniWriter) write(count int) {
	for n := range count {
		l := shaniLane{w: w, n: n, abcd: w.XMM(), e: w.XMM()}
		w.MOVOU(l.outcome(0), l.abcd)
		w.MOVOU(l.outcome(1), l.e)
		w.MOVO(l.e, l.words(1))
		w.lanes = append(w.lanes, l)
	}
	w.eachHalf(func() {
		for g := range 20 {
			for n := range w.lanes {
				w.lanes[n].fourRounds(g)
				if g < 16 {
					w.lanes[n].expand(g + 4)
				}
			}
		}
		for n := range w.lanes {
			w.lanes[n].finish()
		}
	})
	for n := range w.lanes {
		l := &w.lanes[n]
		w.MOVOU(l.abcd, l.outcome(0))
		w.MOVOU(l.e, l.outcome(1))
	}
	w.RET()
}

func (l *shaniLane) row(row int) operand.Mem {
	return operand.Mem{Base: l.w.half, Disp: (l.n*chainRows + row) * rowBytes}
}

func (l *shaniLane) outcome(row int) operand.Mem {
	return operand.Mem{Base: l.w.memory, Disp: shaniOutcomes + (l.n*2+row)*rowBytes}
}

// words returns where words 4g to 4g+3 of the schedule are.
func (l *shaniLane) words(g int) operand.Mem {
	switch g {
	case 2:
		return shaniZero
	case 3:
		return shaniPadding
	}
	return operand.Mem{Base: l.w.scratch, Disp: (l.n*4 + g%4) * rowBytes}
}

// fourRounds adds rounds 4g to 4g+3.
func (l *shaniLane) fourRounds(g int) {
	w := l.w
	if g == 0 {
		w.MOVO(l.abcd, l.words(0))
		w.MOVOU(l.row(rowE), l.e)
		w.PADDL(l.abcd, l.e)
		w.MOVOU(l.row(rowABCD), l.abcd)
	} else {
		w.SHA1NEXTE(l.words(g), l.e)
	}
	next := w.XMM()
	w.MOVO(l.abcd, next)
	w.SHA1RNDS4(operand.U8(g/5), l.e, l.abcd)
	l.e = next
}

// expand adds words 4g to 4g+3 of the schedule. The padding leaves less to do
// for the first of them.
func (l *shaniLane) expand(g int) {
	w := l.w
	x := w.XMM()
	switch g {
	case 4:
		w.MOVO(l.words(0), x)
		w.SHA1MSG1(l.words(1), x)
		w.SHA1MSG2(l.words(3), x)
	case 5:
		w.MOVO(l.words(1), x)
		w.PXOR(l.words(3), x)
		w.SHA1MSG2(l.last, x)
	case 6:
		w.MOVO(l.words(4), x)
		w.SHA1MSG2(l.last, x)
	default:
		w.MOVO(l.words(g-4), x)
		w.SHA1MSG1(l.words(g-3), x)
		w.PXOR(l.words(g-2), x)
		w.SHA1MSG2(l.last, x)
	}
	w.MOVO(x, l.words(g))
	l.last = x
}

// finish adds what comes after the last round.
func (l *shaniLane) finish() {
	w := l.w
	x := w.XMM()
	w.MOVOU(l.row(rowABCD), x)
	w.PADDL(x, l.abcd)
	w.MOVOU(l.row(rowPadded), x)
	w.SHA1NEXTE(x, l.e)
	w.MOVO(l.e, l.words(1))
	w.MOVOU(l.row(rowSumABCD), x)
	w.PXOR(l.abcd, x)
	w.MOVOU(x, l.row(rowSumABCD))
	w.MOVOU(l.row(rowSumE), x)
	w.PXOR(l.e, x)
	w.MOVOU(x, l.row(rowSumE))
}
