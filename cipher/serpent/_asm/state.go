package main

// state is a program that works on groups. If they are one more than resident,
// those that the registers can hold, one group is always parked in the stack
// frame: at the beginning and at the end of each program the last one.
type state struct {
	*Program
	groups []Group
	parked int // -1 if none is
	recent int // the group that was updated last
}

func newState(groups, resident int) *state {
	inRegisters := min(groups, resident)
	s := &state{Program: NewProgram(4 * inRegisters), groups: make([]Group, groups), parked: -1}
	for g := range inRegisters {
		s.groups[g] = Group(s.In[4*g:])
	}
	if groups > resident {
		s.parked = groups - 1
	}
	return s
}

// update replaces a group. If it is parked, the group that was updated before
// takes its place: as they take turns, that is the one needed last.
func (s *state) update(g int, f func(Group) Group) {
	if g == s.parked {
		s.exchange(s.recent)
	}
	s.groups[g] = f(s.groups[g])
	s.recent = g
}

func (s *state) park(g int) {
	for i, w := range s.groups[g] {
		s.store(Stack, i, w)
	}
	s.parked = g
}

func (s *state) unpark() (x Group) {
	for i := range x {
		x[i] = s.load(Stack, i)
	}
	s.parked = -1
	return x
}

// exchange parks a group in place of the one that is parked.
func (s *state) exchange(g int) {
	for i, w := range s.groups[g] {
		s.groups[s.parked][i] = s.load(Stack, i)
		s.store(Stack, i, w)
	}
	s.parked = g
}

// end makes the groups in registers the outputs of the program.
func (s *state) end() *Program {
	inRegisters := s.groups
	if s.parked >= 0 {
		last := len(s.groups) - 1
		if s.parked != last {
			s.exchange(last)
		}
		inRegisters = s.groups[:last]
	}
	for _, x := range inRegisters {
		s.Out = append(s.Out, x[:]...)
	}
	return s.Program
}
