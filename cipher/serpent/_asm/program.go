package main

import "slices"

// Op is an operation on words. A word of a vector kernel is a register that
// holds 32 bits of one block in each lane.
type Op uint8

const (
	And     Op = iota // x & y
	Or                // x | y
	Xor               // x ^ y
	AndNot            // ^x & y
	Ternary           // bit x<<2 | y<<1 | z of n, for each bit of x, y and z
	Rotate            // each lane of x to the left by n bits
	Shift             // each lane of x to the left by n bits
	XorKey            // x ^ word n of the round keys in all lanes

	ShiftRight // each lane of x to the right by n bits
	Key        // word n of the round keys in all lanes

	Load  // item n of an array
	Store // x to item n of an array

	UnpackLow32  // lanes x0 y0 x1 y1 of each four
	UnpackHigh32 // lanes x2 y2 x3 y3
	UnpackLow64  // lanes x0 x1 y0 y1
	UnpackHigh64 // lanes x2 x3 y2 y3
)

// xor3 is the truth table of x ^ y ^ z.
const xor3 = 0x96

// Array names one of the arrays that a kernel reads or writes.
type Array uint8

const (
	Destination Array = iota
	Source
	Before // XORed into the blocks before encryption or decryption
	After  // and after it
)

// Word names a value of a program, which is written once.
type Word int

// None is the outcome of a step that has none.
const None Word = -1

// Step is one operation of a program.
type Step struct {
	Op    Op
	Dst   Word
	Args  []Word // x, y and z, as many as there are
	N     int
	Array Array
}

// Program is a run of steps without branches.
type Program struct {
	Steps []Step
	In    []Word
	Out   []Word
	words Word
}

// NewProgram returns an empty program with inputs.
func NewProgram(inputs int) *Program {
	p := new(Program)
	for range inputs {
		p.In = append(p.In, p.newWord())
	}
	return p
}

func (p *Program) newWord() Word {
	p.words++
	return p.words - 1
}

// add adds a step, and gives it a word for its outcome.
func (p *Program) add(s Step) Word {
	s.Dst = p.newWord()
	p.Steps = append(p.Steps, s)
	return s.Dst
}

func (p *Program) op(op Op, n int, args ...Word) Word {
	return p.add(Step{Op: op, Args: args, N: n})
}

func (p *Program) xor(x, y Word) Word        { return p.op(Xor, 0, x, y) }
func (p *Program) xor3(x, y, z Word) Word    { return p.op(Ternary, xor3, x, y, z) }
func (p *Program) rotate(x Word, n int) Word { return p.op(Rotate, n&31, x) }
func (p *Program) shift(x Word, n int) Word  { return p.op(Shift, n, x) }
func (p *Program) load(a Array, n int) Word  { return p.add(Step{Op: Load, N: n, Array: a}) }
func (p *Program) store(a Array, n int, x Word) {
	p.Steps = append(p.Steps, Step{Op: Store, Dst: None, Args: []Word{x}, N: n, Array: a})
}

// operands returns the words that the step reads, each once.
func (s *Step) operands() (words []Word) {
	for i, w := range s.Args {
		if !slices.Contains(s.Args[:i], w) {
			words = append(words, w)
		}
	}
	return words
}

// commutes tells whether any operand may be the first, by withFirst.
func (s *Step) commutes() bool {
	return s.Op == And || s.Op == Or || s.Op == Xor || s.Op == Ternary
}

// withFirst exchanges operand i with the first.
func (s Step) withFirst(i int) Step {
	s.Args = slices.Clone(s.Args)
	s.Args[0], s.Args[i] = s.Args[i], s.Args[0]
	if s.Op == Ternary {
		s.N = exchangeInputs(s.N, 2, 2-i)
	}
	return s
}

// exchangeInputs returns the truth table with bits i and j of each index
// exchanged.
func exchangeInputs(table, i, j int) (exchanged int) {
	for index := range 8 {
		from := index &^ (1<<i | 1<<j)
		from |= index >> i & 1 << j
		from |= index >> j & 1 << i
		exchanged |= table >> from & 1 << index
	}
	return exchanged
}

// hasMemory tells whether p loads or stores anything but keys.
func (p *Program) hasMemory() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Op == Load || s.Op == Store })
}

// For replaces what m has no instruction for.
func (p *Program) For(m *Machine) *Program {
	q := &Program{In: p.In, Out: p.Out, words: p.words}
	for _, s := range p.Steps {
		switch {
		case s.Op == Rotate && !m.Rotates:
			high := q.shift(s.Args[0], s.N)
			low := q.op(ShiftRight, 32-s.N, s.Args[0])
			s = Step{Op: Xor, Dst: s.Dst, Args: []Word{low, high}}
		case s.Op == XorKey && !m.KeyOperands:
			s = Step{Op: Xor, Dst: s.Dst, Args: []Word{s.Args[0], q.op(Key, s.N)}}
		case s.Op == Ternary && s.N == xor3 && !m.Ternary:
			s = Step{Op: Xor, Dst: s.Dst, Args: []Word{q.xor(s.Args[0], s.Args[1]), s.Args[2]}}
		}
		q.Steps = append(q.Steps, s)
	}
	return q
}
