package main

import (
	"fmt"
	"slices"
)

// Schedule reorders p for a machine that starts some steps per cycle, each of
// which takes one cycle, such that no more words are needed at once than it has
// registers. The steps with the longest way to the end go first;
// where registers are short, those that free one. A key is loaded when it is
// used.
func (p *Program) Schedule(m *Machine) (*Program, error) {
	s := newScheduler(p, m)
	for cycle := 0; len(s.order) < len(p.Steps); cycle++ {
		if cycle > 2*len(p.Steps) {
			return nil, fmt.Errorf("no order found that needs only %d registers", len(m.Registers))
		}
		for range m.PerCycle {
			if i := s.choose(cycle); i >= 0 {
				s.start(i, cycle)
			}
		}
	}
	q := &Program{In: p.In, Out: p.Out, words: p.words}
	for _, i := range s.order {
		q.Steps = append(q.Steps, p.Steps[i])
	}
	return q, nil
}

type scheduler struct {
	*Program
	machine *Machine
	order   []int        // the steps that have started
	started []bool       // by step
	toEnd   []int        // by step: the longest way to the end
	writer  map[Word]int // the step that writes a word
	reads   map[Word]int // how often a word is still to be read
	ready   map[Word]int // the first cycle in which it can be
	live    int          // words that are still to be read
}

func newScheduler(p *Program, m *Machine) *scheduler {
	s := &scheduler{
		Program: p,
		machine: m,
		started: make([]bool, len(p.Steps)),
		toEnd:   make([]int, len(p.Steps)),
		writer:  make(map[Word]int),
		reads:   make(map[Word]int),
		ready:   make(map[Word]int),
		live:    len(p.In),
	}
	for _, w := range p.In {
		s.ready[w] = 0
	}
	for _, w := range p.Out {
		s.reads[w]++
	}
	for i, step := range p.Steps {
		s.writer[step.Dst] = i
		for _, w := range step.operands() {
			s.reads[w]++
		}
	}
	for i := len(p.Steps) - 1; i >= 0; i-- {
		for _, w := range p.Steps[i].operands() {
			if j, ok := s.writer[w]; ok {
				s.toEnd[j] = max(s.toEnd[j], s.toEnd[i]+1)
			}
		}
	}
	return s
}

// choose returns the best step to start in this cycle, or -1.
func (s *scheduler) choose(cycle int) int {
	best := -1
	for i := range s.Steps {
		if s.canStart(i, cycle) && (best < 0 || s.better(i, best)) {
			best = i
		}
	}
	return best
}

func (s *scheduler) canStart(i, cycle int) bool {
	if s.started[i] || s.Steps[i].Op == Key {
		return false
	}
	for _, w := range s.Steps[i].operands() {
		if at, ok := s.ready[w]; !s.waitingKey(w) && (!ok || at > cycle) {
			return false
		}
	}
	_, during := s.growth(i)
	return s.live+during <= len(s.machine.Registers)
}

// waitingKey tells whether w is a key that is not loaded yet.
func (s *scheduler) waitingKey(w Word) bool {
	i, ok := s.writer[w]
	return ok && s.Steps[i].Op == Key && !s.started[i]
}

// growth returns how many more registers are in use after step i, and how many
// more it needs while it runs.
func (s *scheduler) growth(i int) (after, during int) {
	step := &s.Steps[i]
	overwrites := false
	for i, w := range step.Args {
		if slices.Contains(step.Args[:i], w) {
			continue
		}
		if s.waitingKey(w) {
			after++
			during++
		}
		if s.reads[w] == 1 {
			after--
			overwrites = overwrites || s.machine.mayOverwrite(step, i)
		}
	}
	if !overwrites {
		during++
	}
	return after + 1, during
}

func (s *scheduler) better(i, j int) bool {
	growthI, _ := s.growth(i)
	growthJ, _ := s.growth(j)
	short := s.live >= len(s.machine.Registers)-2
	if short && growthI != growthJ {
		return growthI < growthJ
	}
	if s.toEnd[i] != s.toEnd[j] {
		return s.toEnd[i] > s.toEnd[j]
	}
	return growthI < growthJ
}

func (s *scheduler) start(i, cycle int) {
	step := &s.Steps[i]
	for _, w := range step.operands() {
		if s.waitingKey(w) {
			s.start(s.writer[w], cycle)
		}
	}
	after, _ := s.growth(i)
	s.live += after
	for _, w := range step.operands() {
		s.reads[w]--
	}
	s.ready[step.Dst] = cycle + 1
	s.started[i] = true
	s.order = append(s.order, i)
}
