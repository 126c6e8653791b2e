package main

// The description of Serpent in its bitslice form ("Serpent: A Proposal for
// the Advanced Encryption Standard", 1998, appendix A.3), for any width of
// word and any number of groups.

// Group is the four words of as many blocks as a word has lanes.
type Group [4]Word

func (p *Program) sbox(c *Circuit, x Group) (y Group) {
	words := x[:]
	for _, g := range c.Gates {
		words = append(words, p.op(g.Op, words[g.X], words[g.Y]))
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
	b = p.xor(p.xor(b, a), c)
	d = p.xor(p.xor(d, c), p.shift(a, 3))
	b = p.rotate(b, 1)
	d = p.rotate(d, 7)
	a = p.xor(p.xor(a, b), d)
	c = p.xor(p.xor(c, d), p.shift(b, 7))
	return Group{p.rotate(a, 5), b, p.rotate(c, 22), d}
}

func (p *Program) inverseLinear(x Group) Group {
	a, b, c, d := x[0], x[1], x[2], x[3]
	c = p.rotate(c, -22)
	a = p.rotate(a, -5)
	c = p.xor(p.xor(c, d), p.shift(b, 7))
	a = p.xor(p.xor(a, b), d)
	d = p.rotate(d, -7)
	b = p.rotate(b, -1)
	d = p.xor(p.xor(d, c), p.shift(a, 3))
	b = p.xor(p.xor(b, a), c)
	return Group{p.rotate(a, -13), b, p.rotate(c, -3), d}
}

func (p *Program) mixKey(x Group, round int) Group {
	for i := range x {
		x[i] = p.xor(x[i], p.key(4*round+i))
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
func Rounds(half Half, leads []int, resident, from, to, last int) *Program {
	s := newState(len(leads), resident)
	for t := from; t <= to; t++ {
		for g, lead := range leads {
			if h := t + lead; 0 <= h && h <= last {
				s.update(g, func(x Group) Group { return half(s.Program, h, x) })
			}
		}
	}
	return s.end()
}

// MixKey is the program that XORs a round key into all groups.
func MixKey(groups, resident, round int) *Program {
	s := newState(groups, resident)
	for g := range groups {
		s.update(g, func(x Group) Group { return s.mixKey(x, round) })
	}
	return s.end()
}

// Input is the program that loads all blocks, XORs them with those of Before,
// and makes words of them.
func Input(groups, resident int) *Program {
	s := newState(0, resident)
	s.groups = make([]Group, groups)
	for g := groups - 1; g >= 0; g-- {
		x := &s.groups[g]
		for i := range x {
			x[i] = s.xor(s.load(Before, 4*g+i), s.load(Source, 4*g+i))
		}
		if *x = s.transpose(*x); g == resident {
			s.park(g)
		}
	}
	return s.end()
}

// Output is the program that makes blocks of words, XORs them with those of
// After, and stores them, each as soon as that of After is read: so
// Destination may be After. It overwrites the stack frame.
func Output(groups, resident int) *Program {
	s := newState(groups, resident)
	for g := range groups {
		if g == s.parked {
			s.groups[g] = s.unpark()
		}
		x := s.transpose(s.groups[g])
		for i := range x {
			s.store(Destination, 4*g+i, s.xor(s.load(After, 4*g+i), x[i]))
		}
	}
	if groups > resident {
		zero := s.zero()
		for i := range 4 {
			s.store(Stack, i, zero)
		}
	}
	return s.Program
}

// transpose exchanges word i of block j with word j of block i, in each four
// lanes.
func (p *Program) transpose(x Group) Group {
	a, b := p.op(UnpackLow32, x[0], x[1]), p.op(UnpackLow32, x[2], x[3])
	c, d := p.op(UnpackHigh32, x[0], x[1]), p.op(UnpackHigh32, x[2], x[3])
	return Group{
		p.op(UnpackLow64, a, b), p.op(UnpackHigh64, a, b),
		p.op(UnpackLow64, c, d), p.op(UnpackHigh64, c, d),
	}
}
