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

func sboxes(t *testing.T, text string) *Sboxes {
	t.Helper()
	s, err := ParseSboxes(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCircuits(t *testing.T) {
	for name, text := range map[string]string{"sboxes.txt": sboxesText, "sboxes3.txt": sboxes3Text} {
		s := sboxes(t, text)
		for i := range tables {
			for in, out := range tables[i] {
				if got := lookup(s.Forward[i], in); got != out {
					t.Errorf("%s: S-box %d of %d: got %d, want %d", name, i, in, got, out)
				}
				if got := lookup(s.Inverse[i], out); got != in {
					t.Errorf("%s: inverse S-box %d of %d: got %d, want %d", name, i, out, got, in)
				}
			}
		}
	}
}

// TestNoComplements: the round keys of kernels with three-input gates are those
// of the specification.
func TestNoComplements(t *testing.T) {
	s := sboxes(t, sboxes3Text)
	for i := range 8 {
		if s.Forward[i].Invert != [4]bool{} || s.Inverse[i].Invert != [4]bool{} {
			t.Errorf("S-box %d or its inverse leaves words complemented", i)
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
	for i, w := range p.run(words, nil) {
		if c.Invert[i] {
			w = ^w
		}
		out |= int(w&1) << i
	}
	return out
}

// run computes the outputs of p for words of one lane.
func (p *Program) run(in, keys []uint32) (out []uint32) {
	words := make(map[Word]uint32)
	for i, w := range p.In {
		words[w] = in[i]
	}
	for _, s := range p.Steps {
		var args []uint32
		for _, w := range s.Args {
			args = append(args, words[w])
		}
		words[s.Dst] = s.outcome(args, keys)
	}
	for _, w := range p.Out {
		out = append(out, words[w])
	}
	return out
}

func (s *Step) outcome(args, keys []uint32) uint32 {
	args = append(args, 0, 0, 0)
	x, y, z := args[0], args[1], args[2]
	switch s.Op {
	case And:
		return x & y
	case Or:
		return x | y
	case Xor:
		return x ^ y
	case AndNot:
		return ^x & y
	case Ternary:
		var outcome uint32
		for i := range 32 {
			index := x>>i&1<<2 | y>>i&1<<1 | z>>i&1
			outcome |= uint32(s.N) >> index & 1 << i
		}
		return outcome
	case Rotate:
		return bits.RotateLeft32(x, s.N)
	case Shift:
		return x << s.N
	case ShiftRight:
		return x >> s.N
	case Key:
		return keys[s.N]
	case XorKey:
		return x ^ keys[s.N]
	}
	panic("not an operation on words")
}

// execute runs code on registers that are overwritten as m does it.
func (m *Machine) execute(code []Instruction, registers, keys []uint32) {
	for _, i := range code {
		var args []uint32
		for j, r := range i.Args {
			if j == 0 && m.overwrites(&i.Step) {
				registers[i.Dst] = registers[r]
				r = i.Dst
			}
			args = append(args, registers[r])
		}
		registers[i.Dst] = i.outcome(args, keys)
	}
}

// TestReordered proves that the replacement of operations, reordering and
// allocation of registers leave the outcome of all rounds as it is.
func TestReordered(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := func(n int) (w []uint32) {
		for range n {
			w = append(w, random.Uint32())
		}
		return w
	}
	two, three := sboxes(t, sboxesText), sboxes(t, sboxes3Text)
	for _, k := range slices.Concat(sse2Kernels(two), avx2Kernels(two), avx512Kernels(three)) {
		for _, size := range k.Sizes {
			in, keys := words(4*size.groups()), words(4*9)
			want, registers, at := in, words(len(size.Registers)), random.Perm(len(size.Registers))[:len(in)]
			for i, r := range at {
				registers[r] = in[i]
			}
			for _, p := range []*Program{
				Rounds(k.Half, size.Leads, 0, lastHalf-2, lastHalf),
				Rounds(k.Half, size.Leads, lastHalf-1, lastHalf, lastHalf),
			} {
				want = p.run(want, keys)
				code, out, err := size.compile(p, at, size.InOrder)
				if err != nil {
					t.Fatal(err)
				}
				size.execute(code, registers, keys)
				at = out
			}
			for i, r := range at {
				if registers[r] != want[i] {
					t.Errorf("%s, %s of %d blocks: output %d is %#x, want %#x", size.Name, k.verb(), size.blocks(), i, registers[r], want[i])
				}
			}
		}
	}
}

func TestAllocateNeedsRegisters(t *testing.T) {
	small := sse2
	small.Registers = xmm[:5]
	p := Rounds(EncryptHalf(sboxes(t, sboxesText)), []int{0}, 0, 2, lastHalf).For(&small)
	if _, _, err := p.Allocate(&small, []int{0, 1, 2, 3}); err == nil {
		t.Error("a round fits five registers")
	}
	if _, err := p.Schedule(&small); err == nil {
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
	replaceIn := func(good, old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	replace := func(old, new string) string { return replaceIn(sboxesText, old, new) }
	replace3 := func(old, new string) string { return replaceIn(sboxes3Text, old, new) }
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
		"too few operands":  replace3("36(a,b,d)", "36(a,b)"),
		"no truth table":    replace3("36(a,b,d)", "x(a,b,d)"),
		"table too large":   replace3("36(a,b,d)", "136(a,b,d)"),
	} {
		if _, err := ParseSboxes(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestGeneratedFiles compares what the package has with what is generated now.
func TestGeneratedFiles(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 7 {
		t.Errorf("%d files, want 7", len(files))
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
