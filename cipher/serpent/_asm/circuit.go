package main

import (
	"fmt"
	"strconv"
	"strings"
)

// Gate is one operation of a circuit, by its Op, Args and N: words 0 to 3 are
// the inputs, and gate i writes word 4+i.
type Gate = Step

// Circuit is an S-box as a sequence of gates.
type Circuit struct {
	Gates  []Gate
	Out    [4]Word
	Invert [4]bool // this output is the complement of the S-box's
}

// Sboxes holds the eight S-boxes and their inverses.
type Sboxes struct {
	Forward, Inverse [8]*Circuit
}

// ParseSboxes reads the form of sboxes.txt and sboxes3.txt.
func ParseSboxes(text string) (*Sboxes, error) {
	s := new(Sboxes)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, body, _ := strings.Cut(line, ": ")
		if len(name) != 2 || name[1] < '0' || name[1] > '7' {
			return nil, fmt.Errorf("sbox %q: no such name", name)
		}
		boxes := map[byte]*[8]*Circuit{'S': &s.Forward, 'I': &s.Inverse}[name[0]]
		if boxes == nil || boxes[name[1]-'0'] != nil {
			return nil, fmt.Errorf("sbox %q: unknown or there twice", name)
		}
		c, err := parseCircuit(body)
		if err != nil {
			return nil, fmt.Errorf("sbox %s: %w", name, err)
		}
		boxes[name[1]-'0'] = c
	}
	for i := range 8 {
		if s.Forward[i] == nil || s.Inverse[i] == nil {
			return nil, fmt.Errorf("sbox %d is missing", i)
		}
	}
	return s, nil
}

func parseCircuit(body string) (*Circuit, error) {
	words := map[string]Word{"a": 0, "b": 1, "c": 2, "d": 3}
	lookup := func(name string) (Word, error) {
		if w, ok := words[name]; ok {
			return w, nil
		}
		return 0, fmt.Errorf("word %q is used but never written", name)
	}
	c := new(Circuit)
	for _, field := range strings.Fields(body) {
		name, expr, _ := strings.Cut(field, "=")
		if name == "out" {
			outputs := strings.Split(expr, ",")
			if len(outputs) != 4 {
				return nil, fmt.Errorf("%d outputs", len(outputs))
			}
			for i, output := range outputs {
				var err error
				output, c.Invert[i] = strings.CutPrefix(output, "~")
				if c.Out[i], err = lookup(output); err != nil {
					return nil, err
				}
			}
			return c, nil
		}
		g, err := parseGate(expr, lookup)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		words[name] = Word(4 + len(c.Gates))
		c.Gates = append(c.Gates, g)
	}
	return nil, fmt.Errorf("no outputs")
}

func parseGate(expr string, lookup func(string) (Word, error)) (g Gate, err error) {
	var args []string
	if table, list, ok := strings.Cut(expr, "("); ok {
		n, err := strconv.ParseUint(table, 16, 8)
		if err != nil {
			return g, err
		}
		args = strings.Split(strings.TrimSuffix(list, ")"), ",")
		if len(args) != 3 {
			return g, fmt.Errorf("%d operands", len(args))
		}
		g.Op, g.N = Ternary, int(n)
		if args[2] == "*" {
			args[2] = args[0]
			if g.N == 0x3C {
				args, g = args[:2], Gate{Op: Xor}
			}
		}
	} else if args, g.Op, err = cutOperator(expr); err != nil {
		return g, err
	}
	for _, name := range args {
		w, err := lookup(name)
		if err != nil {
			return g, err
		}
		g.Args = append(g.Args, w)
	}
	return g, nil
}

// cutOperator divides a gate of two inputs.
func cutOperator(expr string) (args []string, op Op, err error) {
	i := strings.IndexAny(expr, "&|^")
	if i < 0 {
		return nil, 0, fmt.Errorf("no operator")
	}
	x, y := expr[:i], expr[i+1:]
	op = map[byte]Op{'&': And, '|': Or, '^': Xor}[expr[i]]
	if plain, inverted := strings.CutPrefix(x, "~"); inverted {
		if op != And {
			return nil, 0, fmt.Errorf("~ stands only before &")
		}
		x, op = plain, AndNot
	}
	return []string{x, y}, op, nil
}
