package main

import "fmt"

// Instruction is a step with its registers, for machines whose instructions
// overwrite their first operand: where X is not Dst, a copy comes first. A
// register that is not there is -1.
type Instruction struct {
	Step
	Dst, X, Y int
}

// Allocate gives each word of p one of a number of registers, the inputs those
// of in, and returns those of the outputs. It goes through the steps once. A
// word takes over the register of an operand that is not read again, if it
// can.
func (p *Program) Allocate(registers int, in []int) (code []Instruction, out []int, err error) {
	last := p.lastReads()
	reg := map[Word]int{None: -1}
	used := make([]bool, registers)
	for i, w := range p.In {
		reg[w], used[in[i]] = in[i], true
	}
	for i, s := range p.Steps {
		dies := func(w Word) bool { return w != None && last[w] == i }
		c := Instruction{Step: s, Dst: -1, X: reg[s.X], Y: reg[s.Y]}
		switch {
		case s.Dst == None:
		case dies(s.X):
			c.Dst = c.X
		case dies(s.Y) && s.commutes():
			c.X, c.Y = c.Y, c.X
			c.Dst = c.X
		default:
			if c.Dst = free(used); c.Dst < 0 {
				return nil, nil, fmt.Errorf("step %d needs more than %d registers", i, registers)
			}
		}
		for _, w := range s.operands() {
			if dies(w) {
				used[reg[w]] = false
			}
		}
		if s.Dst != None {
			reg[s.Dst] = c.Dst
			_, read := last[s.Dst]
			used[c.Dst] = read
		}
		code = append(code, c)
	}
	for _, w := range p.Out {
		out = append(out, reg[w])
	}
	return code, out, nil
}

func free(used []bool) int {
	for i, u := range used {
		if !u {
			return i
		}
	}
	return -1
}

// lastReads returns for each word the last step that reads it, for an output
// the number of steps.
func (p *Program) lastReads() map[Word]int {
	last := make(map[Word]int)
	for i, s := range p.Steps {
		for _, w := range s.operands() {
			last[w] = i
		}
	}
	for _, w := range p.Out {
		last[w] = len(p.Steps)
	}
	return last
}

// Move is the copy of one register to another.
type Move struct{ From, To int }

// Moves returns the copies that bring each register of from to that of to, as
// if all were done at once. There must be a register that is not in to.
func Moves(from, to []int, registers int) (moves []Move) {
	used := make([]bool, registers)
	source := make(map[int]int) // of each register that is not yet right
	for i := range from {
		used[to[i]] = true
		if from[i] != to[i] {
			source[to[i]] = from[i]
		}
	}
	for len(source) > 0 {
		dst := overwritable(source, registers)
		if dst < 0 {
			// Only cycles are left. Nothing is in the registers outside of to.
			dst = first(source, registers)
			spare := free(used)
			moves = append(moves, Move{dst, spare})
			for r := range source {
				if source[r] == dst {
					source[r] = spare
				}
			}
		}
		moves = append(moves, Move{source[dst], dst})
		delete(source, dst)
	}
	return moves
}

// overwritable returns a register of source that no other waits for, or -1.
func overwritable(source map[int]int, registers int) int {
	awaited := make([]bool, registers)
	for _, r := range source {
		awaited[r] = true
	}
	for r := range registers {
		if _, ok := source[r]; ok && !awaited[r] {
			return r
		}
	}
	return -1
}

func first(source map[int]int, registers int) int {
	for r := range registers {
		if _, ok := source[r]; ok {
			return r
		}
	}
	return -1
}
