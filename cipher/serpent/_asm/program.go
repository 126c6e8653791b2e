package main

// Op is an operation on words. A word of a vector kernel is a register that
// holds 32 bits of one block in each lane.
type Op uint8

const (
	And    Op = iota // x & y
	Or               // x | y
	Xor              // x ^ y
	AndNot           // ^x & y
	Rotate           // each lane of x to the left by n bits
	Shift            // each lane of x to the left by n bits

	ShiftRight // each lane of x to the right by n bits
	Key        // word n of the round keys in all lanes
	Zero

	Load  // item n of an array
	Store // x to item n of an array

	UnpackLow32  // lanes x0 y0 x1 y1 of each four
	UnpackHigh32 // lanes x2 y2 x3 y3
	UnpackLow64  // lanes x0 x1 y0 y1
	UnpackHigh64 // lanes x2 x3 y2 y3
)

// Array names one of the arrays that a kernel reads or writes.
type Array uint8

const (
	Destination Array = iota
	Source
	Before // XORed into the blocks before encryption or decryption
	After  // and after it
	Stack  // of the kernel itself
)

// Word names a value of a program, which is written once.
type Word int

// None stands for an operand or outcome that is not there.
const None Word = -1

// Step is one operation of a program.
type Step struct {
	Op    Op
	Dst   Word
	X, Y  Word
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

func (p *Program) add(s Step) Word {
	s.Dst = p.newWord()
	p.Steps = append(p.Steps, s)
	return s.Dst
}

func (p *Program) op(op Op, x, y Word) Word { return p.add(Step{Op: op, X: x, Y: y}) }

func (p *Program) xor(x, y Word) Word { return p.op(Xor, x, y) }

func (p *Program) rotate(x Word, n int) Word {
	return p.add(Step{Op: Rotate, X: x, Y: None, N: n & 31})
}

func (p *Program) shift(x Word, n int) Word {
	return p.add(Step{Op: Shift, X: x, Y: None, N: n})
}

func (p *Program) key(n int) Word { return p.add(Step{Op: Key, X: None, Y: None, N: n}) }

func (p *Program) zero() Word { return p.add(Step{Op: Zero, X: None, Y: None}) }

func (p *Program) load(a Array, n int) Word {
	return p.add(Step{Op: Load, X: None, Y: None, N: n, Array: a})
}

func (p *Program) store(a Array, n int, x Word) {
	p.Steps = append(p.Steps, Step{Op: Store, Dst: None, X: x, Y: None, N: n, Array: a})
}

// operands returns the words that the step reads.
func (s *Step) operands() []Word {
	switch {
	case s.X == None:
		return nil
	case s.Y == None || s.Y == s.X:
		return []Word{s.X}
	}
	return []Word{s.X, s.Y}
}

func (s *Step) commutes() bool { return s.Op == And || s.Op == Or || s.Op == Xor }

// hasMemory tells whether p loads or stores anything but keys.
func (p *Program) hasMemory() bool {
	for _, s := range p.Steps {
		if s.Op == Load || s.Op == Store {
			return true
		}
	}
	return false
}

// SplitRotates replaces each rotation by shifts, for machines without it.
func (p *Program) SplitRotates() *Program {
	q := &Program{In: p.In, Out: p.Out, words: p.words}
	for _, s := range p.Steps {
		if s.Op == Rotate {
			high := q.shift(s.X, s.N)
			low := q.add(Step{Op: ShiftRight, X: s.X, Y: None, N: 32 - s.N})
			s = Step{Op: Xor, Dst: s.Dst, X: low, Y: high}
		}
		q.Steps = append(q.Steps, s)
	}
	return q
}
