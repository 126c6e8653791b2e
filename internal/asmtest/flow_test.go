package asmtest

import (
	"slices"
	"strconv"
	"strings"
)

// secrets is a set of places, at one point of a function, whose values may
// depend on a key or on data: general registers and flags. Arguments are public,
// as they are addresses and lengths. All else in memory is secret, and so are
// vectors and masks, and what the caller has left in registers.
type secrets uint32

const (
	// The lowest bits are the general registers, by number.
	zeroFlag  secrets = 1 << (16 + iota) // with those of sign and parity
	carryFlag                            // with that of overflow

	everything = 2*carryFlag - 1
	unreached  = secrets(1 << 31) // nothing leads here
)

func place(register string) secrets { return 1 << registerNumber(register) }

func (s secrets) with(places secrets, secret bool) secrets {
	if secret {
		return s | places
	}
	return s &^ places
}

// holds tells whether the value of o is secret.
func (s secrets) holds(f *function, o operand) bool {
	switch o.kind {
	case constant:
		return false
	case general:
		return s&place(o.text) != 0
	}
	return !f.isArgument(o)
}

// address tells whether that of o depends on a secret.
func (s secrets) address(o operand) bool {
	return isGeneral(o.base) && s&place(o.base) != 0 || isGeneral(o.index) && s&place(o.index) != 0
}

// secrets returns what is secret before each instruction, on any way there.
func (f *function) secrets() []secrets {
	before := slices.Repeat([]secrets{unreached}, len(f.instructions))
	reach := func(n int, s secrets) (news bool) {
		if n == len(f.instructions) {
			return false
		}
		old := before[n]
		if before[n] |= s; old&unreached != 0 {
			before[n] = s
		}
		return before[n] != old
	}
	for news := reach(0, everything); news; {
		news = false
		for n := range f.instructions {
			i := &f.instructions[n]
			if before[n]&unreached != 0 {
				continue
			}
			after := f.after(i, before[n])
			if i.group == "branch" {
				to, _ := f.target(i)
				news = reach(to, after) || news
			}
			if i.mnemonic != "jmp" && i.mnemonic != "ret" {
				news = reach(n+1, after) || news
			}
		}
	}
	return before
}

// after returns what is secret after instruction i.
func (f *function) after(i *instruction, s secrets) secrets {
	switch i.group {
	case "vector", "broadcast", "branch", "other":
		return s
	}
	secret := f.result(i, s)
	if to := i.operands[len(i.operands)-1]; to.kind == general {
		// A part of a register leaves the rest as it is.
		s = s.with(place(to.text), secret || isPart(to.text) && s.holds(f, to))
	}
	switch i.group {
	case "sum":
		return s.with(zeroFlag|carryFlag, secret)
	case "step":
		return s.with(zeroFlag, secret)
	case "turn":
		return s.with(carryFlag, secret)
	}
	return s
}

// result tells whether what i computes from general registers is secret.
func (f *function) result(i *instruction, s secrets) bool {
	from := i.operands
	switch {
	case i.group == "address":
		return s.address(from[0])
	case i.group == "move":
		from = from[:len(from)-1]
	case i.mnemonic == "xor" && from[0].kind == general && from[0].text == from[1].text:
		return false // zero
	}
	return slices.ContainsFunc(from, func(o operand) bool { return s.holds(f, o) })
}

// leak says what i makes known of the secrets before it, or nothing.
func (f *function) leak(i *instruction, s secrets) string {
	if s&unreached != 0 {
		return "no way leads here"
	}
	if i.group == "branch" {
		flags := zeroFlag | carryFlag
		switch i.mnemonic {
		case "jmp":
			flags = 0
		case "je", "jne", "js", "jns":
			flags = zeroFlag
		}
		if s&flags != 0 {
			return "the branch depends on a secret"
		}
		return ""
	}
	if i.group != "address" && slices.ContainsFunc(i.operands, s.address) {
		return "the address depends on a secret"
	}
	switch i.group {
	case "move", "change", "sum", "step", "turn":
		if to := i.operands[len(i.operands)-1]; f.isArgument(to) && f.result(i, s) {
			return "a secret stays on the stack"
		}
	}
	return ""
}

// isArgument tells whether memory is an argument or a result of f.
func (f *function) isArgument(o operand) bool {
	return o.kind == memory && o.base == f.arch.stackPointer && o.index == "" && o.segment == "" &&
		o.displacement >= f.arch.wordBytes && o.displacement < f.arch.wordBytes+f.argumentBytes
}

// target returns which instruction of f a branch leads to.
func (f *function) target(i *instruction) (n int, ok bool) {
	if len(i.operands) != 1 {
		return 0, false
	}
	word, _, _ := strings.Cut(i.operands[0].text, " ")
	address, err := strconv.ParseUint(word, 16, 64)
	if err != nil {
		return 0, false
	}
	return slices.BinarySearchFunc(f.instructions, address, func(i instruction, address uint64) int {
		return int(int64(i.address - address))
	})
}
