package main

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tables are the S-boxes ("Serpent: A Proposal for the Advanced Encryption
// Standard", 1998, appendix A.5).
var tables = [8][16]int{
	{3, 8, 15, 1, 10, 6, 5, 11, 14, 13, 4, 2, 7, 0, 9, 12},
	{15, 12, 2, 7, 9, 0, 5, 10, 1, 11, 14, 8, 6, 13, 3, 4},
	{8, 6, 7, 9, 3, 12, 10, 15, 13, 1, 14, 4, 0, 11, 5, 2},
	{0, 15, 11, 8, 12, 9, 6, 3, 13, 1, 2, 4, 10, 7, 5, 14},
	{1, 15, 8, 3, 12, 0, 11, 6, 2, 5, 4, 10, 9, 14, 7, 13},
	{15, 5, 2, 11, 4, 10, 9, 12, 0, 3, 14, 8, 13, 6, 7, 1},
	{7, 2, 12, 5, 8, 4, 6, 11, 14, 9, 1, 15, 13, 3, 10, 0},
	{1, 13, 15, 0, 14, 8, 2, 11, 7, 4, 12, 10, 9, 3, 5, 6},
}

func sboxes(t *testing.T) *Sboxes {
	t.Helper()
	s, err := ParseSboxes(sboxesText)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCircuits(t *testing.T) {
	s := sboxes(t)
	for i := range tables {
		for in, out := range tables[i] {
			if got := lookup(s.Forward[i], in); got != out {
				t.Errorf("S-box %d of %d: got %d, want %d", i, in, got, out)
			}
			if got := lookup(s.Inverse[i], out); got != in {
				t.Errorf("inverse S-box %d of %d: got %d, want %d", i, out, got, in)
			}
		}
	}
}

// lookup runs a circuit on one value of four bits.
func lookup(c *Circuit, in int) (out int) {
	p := NewProgram(4)
	x := p.sbox(c, Group(p.In))
	p.Out = x[:]
	var words []uint32
	for i := range 4 {
		words = append(words, uint32(in>>i&1))
	}
	for i, w := range p.run(words, new(memory)) {
		if c.Invert[i] {
			w = ^w
		}
		out |= int(w&1) << i
	}
	return out
}

// memory is what programs read and write, for words of one lane.
type memory struct {
	keys  []uint32
	stack [4]uint32
}

// run computes the outputs of p.
func (p *Program) run(in []uint32, m *memory) (out []uint32) {
	words := make(map[Word]uint32)
	for i, w := range p.In {
		words[w] = in[i]
	}
	for _, s := range p.Steps {
		words[s.Dst] = m.step(&s, words[s.X], words[s.Y])
	}
	for _, w := range p.Out {
		out = append(out, words[w])
	}
	return out
}

func (m *memory) step(s *Step, x, y uint32) uint32 {
	switch s.Op {
	case And:
		return x & y
	case Or:
		return x | y
	case Xor:
		return x ^ y
	case AndNot:
		return ^x & y
	case Rotate:
		return bits.RotateLeft32(x, s.N)
	case Shift:
		return x << s.N
	case ShiftRight:
		return x >> s.N
	case Key:
		return m.keys[s.N]
	case Load, Store:
		if s.Array != Stack {
			break
		}
		if s.Op == Store {
			m.stack[s.N] = x
		}
		return m.stack[s.N]
	}
	panic("not an operation on words")
}

// execute runs code on registers that are overwritten as a CPU does it.
func execute(code []Instruction, registers []uint32, m *memory) {
	for _, i := range code {
		if i.Op == Store {
			m.step(&i.Step, registers[i.X], 0)
			continue
		}
		if i.X >= 0 {
			registers[i.Dst] = registers[i.X]
		}
		y := uint32(0)
		if i.Y >= 0 {
			y = registers[i.Y]
		}
		registers[i.Dst] = m.step(&i.Step, registers[i.Dst], y)
	}
}

// TestReordered proves that splitting rotations, reordering and allocation of
// registers leave the outcome of all rounds as it is.
func TestReordered(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := func(n int) (w []uint32) {
		for range n {
			w = append(w, random.Uint32())
		}
		return w
	}
	for _, k := range sse2Kernels(sboxes(t)) {
		p := Rounds(k.Half, k.Leads, k.Resident, 0, lastHalf, lastHalf)
		in, keys := words(len(p.In)), words(4*9)
		wantMemory := memory{keys: keys}
		want := p.run(in, &wantMemory)
		q := p.SplitRotates()
		if !k.InOrder {
			var err error
			if q, err = q.Schedule(k.PerCycle, k.Registers); err != nil {
				t.Fatal(err)
			}
		}
		inRegisters := random.Perm(k.Registers)[:len(in)]
		code, outRegisters, err := q.Allocate(k.Registers, inRegisters)
		if err != nil {
			t.Fatal(err)
		}
		registers := words(k.Registers)
		for i, r := range inRegisters {
			registers[r] = in[i]
		}
		gotMemory := memory{keys: keys}
		execute(code, registers, &gotMemory)
		if gotMemory.stack != wantMemory.stack {
			t.Errorf("%s of %d blocks: the parked group differs", k.verb(), k.blocks())
		}
		for i, r := range outRegisters {
			if registers[r] != want[i] {
				t.Errorf("%s of %d blocks: output %d is %#x, want %#x", k.verb(), k.blocks(), i, registers[r], want[i])
			}
		}
	}
}

func TestAllocateNeedsRegisters(t *testing.T) {
	p := Rounds(EncryptHalf(sboxes(t)), []int{0}, 3, 0, 2, lastHalf)
	if _, _, err := p.Allocate(5, []int{0, 1, 2, 3}); err == nil {
		t.Error("a round fits five registers")
	}
	if _, err := p.Schedule(3, 5); err == nil {
		t.Error("a round has an order that fits five registers")
	}
}

func TestMoves(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		const registers, words = 16, 12
		from, to := random.Perm(registers)[:words], random.Perm(registers)[:words]
		content := make([]int, registers)
		for i, r := range from {
			content[r] = i + 1
		}
		for _, m := range Moves(from, to, registers) {
			content[m.To] = content[m.From]
		}
		for i, r := range to {
			if content[r] != i+1 {
				t.Fatalf("from %v to %v: word %d is wrong", from, to, i)
			}
		}
	}
	if got := Moves([]int{1, 2}, []int{1, 2}, 4); len(got) != 0 {
		t.Errorf("got moves %v for words that are in place", got)
	}
	if got, want := Moves([]int{1, 2}, []int{2, 1}, 4), []Move{{1, 0}, {2, 1}, {0, 2}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseSboxesErrors(t *testing.T) {
	good := sboxesText
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, text := range map[string]string{
		"missing box":       "",
		"box twice":         replace("S1:", "S0:"),
		"unknown box":       replace("S0:", "T0:"),
		"no such number":    replace("S7:", "S8:"),
		"unknown word":      replace("t0=a^d", "t0=a^e"),
		"word of later":     replace("t0=a^d", "t0=a^t5"),
		"no operator":       replace("t0=a^d", "t0=a"),
		"~ before ^":        replace("t0=a^d", "t0=~a^d"),
		"too few outputs":   replace("out=~t12,", "out="),
		"no outputs":        replace(" out=~t12,~t11,t8,t4", ""),
		"output unknown":    replace("out=~t12", "out=~t99"),
		"nothing after it ": replace("S0:", "S0"),
	} {
		if _, err := ParseSboxes(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestGeneratedFiles compares what the package has with what is generated now.
func TestGeneratedFiles(t *testing.T) {
	files, err := generate("serpent")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 3 {
		t.Errorf("%d files, want 3", len(files))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what is generated now: run go generate in cipher/serpent", name)
		}
	}
}
