//go:build !purego

package serpent

import "math"

// passes tells how a vector kernel divides its work: into passes of whole
// groups of blocks as long as there are any, and one for what is left.
type passes struct {
	least  int   // so many blocks are worth a pass
	parts  []int // for how many blocks, less than a group, there are passes
	group  int   // blocks
	groups []int // groups[n] is how many the next pass takes of n, the last one of more
}

// Passes are as even as they can be: one of few groups takes nearly as long as
// one of twice as many.
var passesOf = [...]passes{
	Generic: {least: math.MaxInt},
	SSE2:    {least: 3, group: 4, groups: []int{0, 1, 2, 3, 2, 3}},
	AVX2:    {least: 3, group: 8, groups: []int{0, 1, 2, 3, 2, 3}},
	AVX512:  {least: 1, parts: []int{1, 2, 4, 8}, group: 16, groups: []int{0, 1, 2, 3, 4, 3, 6, 4, 4, 6, 6, 3, 6}},
}

const (
	maxGroup = 16 * BlockSize
	maxPass  = 6 * maxGroup
)

// passes is that of the kernel of c. The portable code takes nothing here.
func (c *Cipher) passes() *passes { return &passesOf[c.kernel] }

// next returns how many groups the next pass takes if there are n.
func (p *passes) next(n int) int { return p.groups[min(n, len(p.groups)-1)] }

// size returns how many of n bytes the next pass takes.
func (p *passes) size(n int) int {
	blocks := n / BlockSize
	switch {
	case blocks < p.least:
		return 0
	case blocks < p.group:
		return n
	}
	return p.next(blocks/p.group) * p.group * BlockSize
}

// room returns for how many blocks the kernel runs in a pass of n.
func (p *passes) room(n int) int {
	if n >= p.group {
		return n
	}
	for _, part := range p.parts {
		if n <= part {
			return part
		}
	}
	return p.group
}

// lanes returns how many of n sectors the next pass takes, a lane each. The
// last group need not be full.
func (p *passes) lanes(n int) int {
	if n < p.least {
		return 0
	}
	return min(n, p.next((n+p.group-1)/p.group)*p.group)
}

// roomForLanes returns for how many lanes the kernel runs if there are n.
func (p *passes) roomForLanes(n int) int {
	if n < p.group {
		return p.room(n)
	}
	return (n + p.group - 1) / p.group * p.group
}
