package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Kernel is a function that encrypts or decrypts a fixed number of blocks.
type Kernel struct {
	Machine
	Decrypt bool
	Half    Half
	Leads   []int // of each group, ascending; see Rounds
	InOrder bool  // the registers do not suffice to reorder the steps
}

// Machine is an instruction set.
type Machine struct {
	Name      string
	Registers int
	Resident  int // how many groups they can hold while one is worked on
	PerCycle  int // how many steps a CPU starts per cycle
	Lanes     int // how many blocks are in a group
	WordBytes int // what a word of a round key takes in memory

	// Write adds the instructions of a step to c. The word that it loads or
	// stores is at m.
	Write func(c *build.Context, i Instruction, m operand.Mem)
	// Copy adds the copy of a register.
	Copy func(c *build.Context, m Move)
}

const (
	blockBytes = 16
	roundKeys  = 33 // of four words each
)

func (k *Kernel) groups() int { return len(k.Leads) }
func (k *Kernel) blocks() int { return k.groups() * k.Lanes }

func (k *Kernel) verb() string {
	if k.Decrypt {
		return "decrypt"
	}
	return "encrypt"
}

// writer adds one kernel to c.
type writer struct {
	*Kernel
	c      *build.Context
	arrays [4]reg.Register // the first parameters, in the order of Array
	stack  operand.Mem
	keys   reg.Register // the round keys of the current eight rounds
	err    error
}

// Write adds the function to c.
func (k *Kernel) Write(c *build.Context) error {
	w := &writer{Kernel: k, c: c}
	w.declare()
	regs := w.program(Input(w.groups(), w.Resident), nil)
	w.rounds(regs)
	return w.err
}

func (w *writer) declare() {
	bytes := w.blocks() * blockBytes
	name := fmt.Sprintf("%s%d%s", w.verb(), w.blocks(), w.Name)
	w.c.Function(name)
	w.c.Doc(fmt.Sprintf("%s %ss %d blocks of src, XORed with those of before, and", name, w.verb(), w.blocks()),
		"XORs the outcome with those of after. dst may be any of the others.")
	w.c.Pragma("noescape")
	w.c.SignatureExpr(fmt.Sprintf("func(dst, src, before, after *[%d]byte, keys *[%d][4][%d]uint32)",
		bytes, roundKeys, w.WordBytes/4))
	w.c.Comment(
		fmt.Sprintf("dst = %s(src ^ before) ^ after", w.verb()),
		fmt.Sprintf("dst, src, before, after: %d bytes each, at any address. dst is written after all", bytes),
		"of src and before is read, and each block of it after that block of after.",
		fmt.Sprintf("keys: %d bytes, the round keys, each word in all lanes.", roundKeys*4*w.WordBytes),
		"Algorithm: bitslice Serpent (Anderson, Biham, Knudsen: Serpent, 1998, appendix A.3),",
		fmt.Sprintf("%d groups of %d blocks. No branch and no address depends on the data.", w.groups(), w.Lanes),
	)
	for array := range w.arrays {
		w.arrays[array] = w.c.Load(w.c.ParamIndex(array), w.c.GP64())
	}
	if w.groups() > w.Resident {
		w.stack = w.c.AllocLocal(4 * w.WordBytes)
	}
	w.keys = w.c.Load(w.c.Param("keys"), w.c.GP64())
}

// rounds adds all rounds, for words in the given registers, and the output.
func (w *writer) rounds(regs []int) {
	c := w.c
	eightKeys := 8 * 4 * w.WordBytes
	if w.Decrypt {
		regs = w.program(MixKey(w.groups(), w.Resident, 32), regs)
		c.ADDQ(operand.I32(3*eightKeys), w.keys)
		eightKeys = -eightKeys
	}
	run := func(from, to, last int, in []int) []int {
		return w.program(Rounds(w.Half, w.Leads, w.Resident, from, to, last), in)
	}
	maxLead := w.Leads[w.groups()-1]
	unlimited := lastHalf + 1 + maxLead // the next eight rounds follow
	exit := lastHalf - maxLead          // the last half round of all before the end is near

	regs = run(-maxLead, -1, unlimited, regs)
	count := c.GP64()
	c.MOVQ(operand.U32(4), count)

	c.Label("eightRounds")
	start := regs
	regs = run(0, exit, unlimited, regs)
	c.DECQ(count)
	c.JZ(operand.LabelRef("lastRounds"))
	end := run(exit+1, lastHalf+1, unlimited, regs)
	c.ADDQ(operand.I32(eightKeys), w.keys)
	for _, m := range Moves(end, start, w.Registers) {
		w.Copy(c, m)
	}
	c.JMP(operand.LabelRef("eightRounds"))

	c.Label("lastRounds")
	regs = run(exit+1, lastHalf, lastHalf, regs)
	if !w.Decrypt {
		regs = w.program(MixKey(w.groups(), w.Resident, 8), regs)
	}
	w.program(Output(w.groups(), w.Resident), regs)
	c.RET()
}

// program adds p with its inputs in the registers in, and returns those of its
// outputs.
func (w *writer) program(p *Program, in []int) (out []int) {
	if w.err != nil {
		return nil
	}
	p = p.SplitRotates()
	if !w.InOrder && !p.hasMemory() {
		if p, w.err = p.Schedule(w.PerCycle, w.Registers); w.err != nil {
			return nil
		}
	}
	code, out, err := p.Allocate(w.Registers, in)
	if err != nil {
		w.err = err
		return nil
	}
	for _, i := range code {
		w.Machine.Write(w.c, i, w.memory(&i.Step))
	}
	return out
}

// memory returns what the step loads or stores, if it does.
func (w *writer) memory(s *Step) operand.Mem {
	switch {
	case s.Op == Key:
		return operand.Mem{Base: w.keys, Disp: w.WordBytes * s.N}
	case s.Op != Load && s.Op != Store:
		return operand.Mem{}
	case s.Array == Stack:
		return w.stack.Offset(w.WordBytes * s.N)
	}
	return operand.Mem{Base: w.arrays[s.Array], Disp: blockBytes * s.N}
}
