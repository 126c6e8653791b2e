package main

// The description of Serpent in its bitslice form ("Serpent: A Proposal for
// the Advanced Encryption Standard", 1998, appendix A.3), for any width of
// word and any number of groups.

// Group is the four words of as many blocks as a word has lanes.
type Group [4]Word

func (p *Program) sbox(c *Circuit, x Group) (y Group) {
	words := x[:]
	for _, g := range c.Gates {
		args := make([]Word, len(g.Args))
		for i, w := range g.Args {
			args[i] = words[w]
		}
		words = append(words, p.op(g.Op, g.N, args...))
	}
	for i, w := range c.Out {
		y[i] = words[w]
	}
	return y
}

func (p *Program) linear(x Group) Group {
	a, b, c, d := x[0], x[1], x[2], x[3]
	a = p.rotate(a, 13)
	c = p.rotate(c, 3)
	b = p.xor3(b, a, c)
	d = p.xor3(d, c, p.shift(a, 3))
	b = p.rotate(b, 1)
	d = p.rotate(d, 7)
	a = p.xor3(a, b, d)
	c = p.xor3(c, d, p.shift(b, 7))
	return Group{p.rotate(a, 5), b, p.rotate(c, 22), d}
}

func (p *Program) inverseLinear(x Group) Group {
	a, b, c, d := x[0], x[1], x[2], x[3]
	c = p.rotate(c, -22)
	a = p.rotate(a, -5)
	c = p.xor3(c, d, p.shift(b, 7))
	a = p.xor3(a, b, d)
	d = p.rotate(d, -7)
	b = p.rotate(b, -1)
	d = p.xor3(d, c, p.shift(a, 3))
	b = p.xor3(b, a, c)
	return Group{p.rotate(a, -13), b, p.rotate(c, -3), d}
}

func (p *Program) mixKey(x Group, round int) Group {
	for i := range x {
		x[i] = p.op(XorKey, 4*round+i, x[i])
	}
	return x
}

// Half adds half round h to a program. Of each eight rounds, half 0 is the
// first S-box with its round key, half 1 the first linear transformation, and
// so on; half 16 is the first S-box of the next eight. Round keys count from
// the lowest of the eight.
type Half func(p *Program, h int, x Group) Group

// lastHalf is the last half round of the cipher in its last eight rounds:
// they end without a linear transformation.
const lastHalf = 14

// EncryptHalf returns the half rounds of encryption.
func EncryptHalf(s *Sboxes) Half {
	return func(p *Program, h int, x Group) Group {
		if h%2 == 1 {
			return p.linear(x)
		}
		round := h / 2
		return p.sbox(s.Forward[round%8], p.mixKey(x, round))
	}
}

// DecryptHalf returns the half rounds of decryption, which goes from the
// eighth round key to the first.
func DecryptHalf(s *Sboxes) Half {
	return func(p *Program, h int, x Group) Group {
		if h%2 == 1 {
			return p.inverseLinear(x)
		}
		round := 7 - h/2
		return p.mixKey(p.sbox(s.Inverse[round&7], x), round)
	}
}

// Rounds is the program of a run of half rounds, from one up to another. Each
// group is its lead ahead of that, so that the S-boxes of one group, which
// are chains of dependent steps, fall together with the linear transformation
// of another. No group does a half round before 0 or after last.
func Rounds(half Half, leads []int, from, to, last int) *Program {
	p, groups := programOf(len(leads))
	for t := from; t <= to; t++ {
		for g, lead := range leads {
			if h := t + lead; 0 <= h && h <= last {
				groups[g] = half(p, h, groups[g])
			}
		}
	}
	p.output(groups)
	return p
}

// MixKey is the program that XORs a round key into all groups.
func MixKey(groups, round int) *Program {
	p, all := programOf(groups)
	for g := range all {
		all[g] = p.mixKey(all[g], round)
	}
	p.output(all)
	return p
}

// Input is the program that loads a number of items, XORs them with those of
// Before, and makes words of them, in groups of four items. In place of those
// that lack in a group it takes the first.
func Input(items int) *Program {
	p := NewProgram(0)
	var groups []Group
	for first := 0; first < items; first += 4 {
		var x Group
		for i := range x {
			if x[i] = x[0]; first+i < items {
				x[i] = p.xor(p.load(Before, first+i), p.load(Source, first+i))
			}
		}
		groups = append(groups, p.transpose(x))
	}
	p.output(groups)
	return p
}

// Output is the program that makes items of words, XORs as many as there are
// with those of After, and stores them, each as soon as that of After is read:
// so Destination may be After.
func Output(items int) *Program {
	p, groups := programOf((items + 3) / 4)
	for g, x := range groups {
		for i, w := range p.transpose(x) {
			if n := 4*g + i; n < items {
				p.store(Destination, n, p.xor(p.load(After, n), w))
			}
		}
	}
	return p
}

// programOf returns an empty program whose inputs are groups.
func programOf(groups int) (*Program, []Group) {
	p := NewProgram(4 * groups)
	all := make([]Group, groups)
	for g := range all {
		all[g] = Group(p.In[4*g:])
	}
	return p, all
}

// output makes groups the outputs of the program.
func (p *Program) output(groups []Group) {
	for _, x := range groups {
		p.Out = append(p.Out, x[:]...)
	}
}

// transpose exchanges word i of block j with word j of block i, in each four
// lanes.
func (p *Program) transpose(x Group) Group {
	a, b := p.op(UnpackLow32, 0, x[0], x[1]), p.op(UnpackLow32, 0, x[2], x[3])
	c, d := p.op(UnpackHigh32, 0, x[0], x[1]), p.op(UnpackHigh32, 0, x[2], x[3])
	return Group{
		p.op(UnpackLow64, 0, a, b), p.op(UnpackHigh64, 0, a, b),
		p.op(UnpackLow64, 0, c, d), p.op(UnpackHigh64, 0, c, d),
	}
}
