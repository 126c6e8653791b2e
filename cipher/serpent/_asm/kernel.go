package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Kernel is a function that encrypts or decrypts some numbers of blocks.
type Kernel struct {
	Decrypt bool
	Half    Half
	Sizes   []Size
}

// Size is how a kernel works on a number of blocks. All sizes of a kernel are
// for the same CPUs and read the same round keys.
type Size struct {
	Machine
	Leads   []int // of each group, ascending; see Rounds
	Lack    int   // how many blocks the group lacks, in groups of four
	InOrder bool  // the registers do not suffice to reorder the steps
}

func (s *Size) groups() int { return len(s.Leads) }
func (s *Size) blocks() int { return s.groups()*s.Lanes - s.Lack }

// items returns how many registers the blocks fill.
func (s *Size) items() int { return 4*s.groups() - s.Lack }

// kernels returns one for each direction.
func kernels(s *Sboxes, sizes ...Size) []Kernel {
	return []Kernel{
		{Half: EncryptHalf(s), Sizes: sizes},
		{Half: DecryptHalf(s), Sizes: sizes, Decrypt: true},
	}
}

// Machine is an instruction set.
type Machine struct {
	Name      string
	Registers []reg.VecPhysical
	PerCycle  int // how many steps a CPU starts per cycle
	Lanes     int // how many blocks are in a group
	KeyLanes  int // in how many lanes a word of a round key is in memory

	ThreeOperands bool // no operand is overwritten, but for Ternary
	Ternary       bool // has instructions for these operations
	Rotates       bool
	KeyOperands   bool // for XorKey

	// Write adds the instructions of a step to c, for operands and outcome in
	// these registers. What it loads or stores is at m.
	Write func(c *build.Context, s *Step, dst reg.Register, args []reg.Register, m operand.Mem)
	Copy  func(c *build.Context, from, to reg.Register)
	// Leave adds what has to come before the return, if anything.
	Leave func(c *build.Context)
}

// arguments returns those that there are.
func arguments(args []reg.Register) (x, y, z reg.Register) {
	var all [3]reg.Register
	copy(all[:], args)
	return all[0], all[1], all[2]
}

// overwrites tells whether the outcome of s has to be where its first operand
// is.
func (m *Machine) overwrites(s *Step) bool { return !m.ThreeOperands || s.Op == Ternary }

// mayOverwrite tells whether the outcome of s can be where operand i is.
func (m *Machine) mayOverwrite(s *Step, i int) bool {
	return i == 0 || s.commutes() || !m.overwrites(s)
}

// itemBytes is what a register holds.
func (m *Machine) itemBytes() int { return 4 * m.Lanes }

const (
	blockBytes = 16
	roundKeys  = 33 // of four words each
)

func (k *Kernel) verb() string {
	if k.Decrypt {
		return "decrypt"
	}
	return "encrypt"
}

// keyBytes is what a word of a round key takes in memory.
func (m *Machine) keyBytes() int { return 4 * m.KeyLanes }

// Write adds the function to c.
func (k *Kernel) Write(c *build.Context) error {
	var sizes []string
	for _, s := range k.Sizes {
		sizes = append(sizes, strconv.Itoa(s.blocks()))
	}
	any := &k.Sizes[0]
	name := k.verb() + any.Name
	c.Function(name)
	c.Doc(fmt.Sprintf("%s %ss blocks of src, XORed with those of before, and XORs the outcome with", name, k.verb()),
		fmt.Sprintf("those of after. dst may be any of the others. blocks is one of %s.", strings.Join(sizes, ", ")))
	c.Pragma("noescape")
	c.SignatureExpr(fmt.Sprintf("func(dst, src, before, after *byte, blocks int, keys *[%d][4][%d]uint32)", roundKeys, any.KeyLanes))
	c.Comment(
		fmt.Sprintf("dst = %s(src ^ before) ^ after", k.verb()),
		"dst, src, before, after: 16 bytes for each block, at any address. dst is written",
		"after all of src and before is read, and each block of it after that block of after.",
		fmt.Sprintf("keys: %d bytes, the round keys, each word %d times.", roundKeys*4*any.keyBytes(), any.KeyLanes),
		"Algorithm: bitslice Serpent (Anderson, Biham, Knudsen: Serpent, 1998, appendix A.3).",
		"No branch and no address depends on the data.",
	)
	blocks := c.Load(c.Param("blocks"), c.GP64())
	for _, s := range k.Sizes[1:] {
		c.CMPQ(blocks, operand.U8(s.blocks()))
		c.JEQ(operand.LabelRef(s.label("blocks")))
	}
	for _, s := range k.Sizes {
		w := &writer{Kernel: k, Size: s, c: c}
		if w.write(); w.err != nil {
			return fmt.Errorf("%s of %d blocks: %w", name, s.blocks(), w.err)
		}
	}
	return nil
}

// label returns a name that no other size uses.
func (s *Size) label(name string) string { return fmt.Sprintf("%s%d", name, s.blocks()) }

// writer adds the code of one size to c.
type writer struct {
	*Kernel
	Size
	c      *build.Context
	arrays [4]reg.Register // the first parameters, in the order of Array
	keys   reg.Register    // the round keys of the current eight rounds
	err    error
}

func (w *writer) write() {
	w.c.Label(w.label("blocks"))
	for array := range w.arrays {
		w.arrays[array] = w.c.Load(w.c.ParamIndex(array), w.c.GP64())
	}
	w.keys = w.c.Load(w.c.Param("keys"), w.c.GP64())
	w.rounds(w.program(Input(w.items()), nil))
	if w.Leave != nil {
		w.Leave(w.c)
	}
	w.c.RET()
}

// rounds adds all rounds, for words in the given registers, and the output.
func (w *writer) rounds(regs []int) {
	c := w.c
	eightKeys := 8 * 4 * w.keyBytes()
	if w.Decrypt {
		regs = w.program(MixKey(w.groups(), 32), regs)
		c.ADDQ(operand.I32(3*eightKeys), w.keys)
		eightKeys = -eightKeys
	}
	run := func(from, to, last int, in []int) []int {
		return w.program(Rounds(w.Half, w.Leads, from, to, last), in)
	}
	maxLead := w.Leads[w.groups()-1]
	unlimited := lastHalf + 1 + maxLead // the next eight rounds follow
	exit := lastHalf - maxLead          // the last half round of all before the end is near

	regs = run(-maxLead, -1, unlimited, regs)
	count := c.GP64()
	c.MOVQ(operand.U32(4), count)

	c.Label(w.label("eightRounds"))
	start := regs
	regs = run(0, exit, unlimited, regs)
	c.DECQ(count)
	c.JZ(operand.LabelRef(w.label("lastRounds")))
	end := run(exit+1, lastHalf+1, unlimited, regs)
	c.ADDQ(operand.I32(eightKeys), w.keys)
	for _, m := range Moves(end, start, len(w.Registers)) {
		w.Copy(c, w.Registers[m.From], w.Registers[m.To])
	}
	c.JMP(operand.LabelRef(w.label("eightRounds")))

	c.Label(w.label("lastRounds"))
	regs = run(exit+1, lastHalf, lastHalf, regs)
	if !w.Decrypt {
		regs = w.program(MixKey(w.groups(), 8), regs)
	}
	w.program(Output(w.items()), regs)
}

// program adds p with its inputs in the registers in, and returns those of its
// outputs.
func (w *writer) program(p *Program, in []int) (out []int) {
	if w.err != nil {
		return nil
	}
	var code []Instruction
	if code, out, w.err = w.compile(p, in, w.InOrder); w.err != nil {
		return nil
	}
	for _, i := range code {
		var dst reg.Register
		if i.Dst >= 0 {
			dst = w.Registers[i.Dst]
		}
		var args []reg.Register
		for _, r := range i.Args {
			args = append(args, w.Registers[r])
		}
		w.Machine.Write(w.c, &i.Step, dst, args, w.memory(&i.Step))
	}
	return out
}

// compile turns p into instructions, for inputs in the registers in, and
// returns the registers of the outputs.
func (m *Machine) compile(p *Program, in []int, inOrder bool) (code []Instruction, out []int, err error) {
	p = p.For(m)
	if !inOrder && !p.hasMemory() {
		if p, err = p.Schedule(m); err != nil {
			return nil, nil, err
		}
	}
	return p.Allocate(m, in)
}

// memory returns what the step loads or stores, if it does.
func (w *writer) memory(s *Step) operand.Mem {
	switch {
	case s.Op == Key || s.Op == XorKey:
		return operand.Mem{Base: w.keys, Disp: w.keyBytes() * s.N}
	case s.Op == Load || s.Op == Store:
		return operand.Mem{Base: w.arrays[s.Array], Disp: w.itemBytes() * s.N}
	}
	return operand.Mem{}
}
