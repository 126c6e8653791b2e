package main

import "fmt"

// Instruction is a step with its registers. Where a machine overwrites the
// first operand and that is not Dst, a copy comes first. A register that is
// not there is -1.
type Instruction struct {
	Step
	Dst  int
	Args []int
}

// Allocate gives each word of p one of m's registers, the inputs those of in,
// and returns those of the outputs. It goes through the steps once. A word
// takes over the register of an operand that is not read again, if it can: of
// several that of the last one written, as instructions that overwrite an
// operand may wait for it alone.
func (p *Program) Allocate(m *Machine, in []int) (code []Instruction, out []int, err error) {
	last := p.lastReads()
	written := make(map[Word]int)
	reg := map[Word]int{None: -1}
	used := make([]bool, len(m.Registers))
	for i, w := range p.In {
		reg[w], used[in[i]] = in[i], true
	}
	for i, s := range p.Steps {
		reused := -1
		for j, w := range s.Args {
			if last[w] == i && m.mayOverwrite(&s, j) && (reused < 0 || written[w] > written[s.Args[reused]]) {
				reused = j
			}
		}
		dst := -1
		switch {
		case s.Dst == None:
		case reused >= 0:
			if dst = reg[s.Args[reused]]; m.overwrites(&s) {
				s = s.withFirst(reused)
			}
		default:
			if dst = free(used); dst < 0 {
				return nil, nil, fmt.Errorf("step %d needs more than %d registers", i, len(m.Registers))
			}
		}
		c := Instruction{Step: s, Dst: dst}
		for _, w := range s.Args {
			c.Args = append(c.Args, reg[w])
			if last[w] == i {
				used[reg[w]] = false
			}
		}
		if s.Dst != None {
			reg[s.Dst], written[s.Dst] = dst, i
			_, read := last[s.Dst]
			used[dst] = read
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
