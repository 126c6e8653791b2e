package kdf

import (
	"context"
	"fmt"

	"serpcrypt/hash/sha1"
	"serpcrypt/internal/secret"
)

// row is jobs of PBKDF2-HMAC-SHA1 and their chains, one for each output block.
// The jobs stand in the order of their iterations and the chains in that of the
// jobs, so that those under way are always a run of neighbours: no job ends
// before one that stands in front of it, and the next to begin follows behind.
// Nothing is ever moved to fill the lanes.
type row struct {
	kernel   sha1.ChainKernel
	jobs     []rowJob
	chains   []sha1.Chain         // in locked memory
	cycles   func(chains int) int // that an iteration of so many chains costs
	least    []int                // cycles that an iteration costs of all jobs from one on
	from, to int                  // the jobs that are under way
}

type rowJob struct {
	place    int // among the jobs of the caller
	keyLen   int // bytes
	left     int // iterations
	from, to int // its chains
}

// deriveSideBySide does as many jobs at a time as the kernel has lanes for.
func deriveSideBySide(ctx context.Context, k sha1.ChainKernel, jobs []Job, order []int, ready func([]Derived) error) error {
	r := row{kernel: k, cycles: k.Cycles}
	for _, i := range order {
		first := r.end(len(r.jobs))
		last := first + (jobs[i].KeyLen+sha1.Size-1)/sha1.Size
		r.jobs = append(r.jobs, rowJob{i, jobs[i].KeyLen, jobs[i].Iterations - 1, first, last})
	}
	chains, free, err := secret.Slice[sha1.Chain](r.end(len(r.jobs)))
	if err != nil {
		return fmt.Errorf("kdf: %w", err)
	}
	defer free()
	r.chains = chains
	r.plan()
	for _, j := range r.jobs {
		for block := range chains[j.from:j.to] {
			chains[j.from+block].Start(jobs[j.place].Password, jobs[j.place].Salt, uint32(block+1))
		}
	}
	for r.from < len(r.jobs) {
		if err := r.advance(ctx); err != nil {
			return err
		}
		if err := r.handOut(ready); err != nil {
			return err
		}
	}
	return nil
}

// end returns where the chains of the first n jobs end.
func (r *row) end(n int) int {
	if n == 0 {
		return 0
	}
	return r.jobs[n-1].to
}

// advance lets jobs begin, and iterates until the next one has no iterations
// left.
func (r *row) advance(ctx context.Context) error {
	r.to = r.chooseEnd()
	n := r.jobs[r.from].left
	if err := iterate(ctx, r.kernel, r.chains[r.jobs[r.from].from:r.end(r.to)], n); err != nil {
		return err
	}
	for i := r.from; i < r.to; i++ {
		r.jobs[i].left -= n
	}
	return nil
}

// plan finds out what the jobs cost if those that share lanes are chosen well.
func (r *row) plan() {
	r.least = make([]int, len(r.jobs)+1)
	for i := len(r.jobs) - 1; i >= 0; i-- {
		r.least[i] = r.cost(i, i+1)
		for end := i + 2; end <= len(r.jobs) && r.chainsOf(i, end) <= maxLanes; end++ {
			r.least[i] = min(r.least[i], r.cost(i, end))
		}
	}
}

// chooseEnd returns which jobs shall be under way, those that are among them.
// Lanes that would be empty cost nothing, but the kernels with the most lanes
// are not the fastest for few chains, nor does every CPU have such. More jobs
// than pay would only keep the first ones from being ready soon.
func (r *row) chooseEnd() int {
	first := max(r.to, r.from+1)
	least := r.cost(r.from, first)
	for end := first + 1; end <= len(r.jobs) && r.chainsOf(r.from, end) <= maxLanes; end++ {
		least = min(least, r.cost(r.from, end))
	}
	end := first
	for ; r.cost(r.from, end) > least+least/worthwhile; end++ {
	}
	return end
}

const (
	maxLanes   = 64 // more than any kernel has
	worthwhile = 20 // to save less than one part of so many is not
)

// cost returns the cycles of an iteration of every job from the first on, with
// those up to end side by side, and what follows as well as possible.
func (r *row) cost(first, end int) int {
	return r.cycles(r.chainsOf(first, end)) + r.least[end]
}

func (r *row) chainsOf(first, end int) int { return r.end(end) - r.jobs[first].from }

// lookAfter bounds what goes by without a look at the context: 0.2 ms at 2 GHz.
const lookAfter = 400_000 // cycles

// iterate looks at ctx all the time.
func iterate(ctx context.Context, k sha1.ChainKernel, chains []sha1.Chain, n int) error {
	for step := max(1, lookAfter/k.Cycles(len(chains))); n > 0; n -= step {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := sha1.Iterate(k, chains, min(step, n)); err != nil {
			return fmt.Errorf("kdf: %w", err)
		}
	}
	return ctx.Err()
}

// handOut gives the jobs without iterations left to ready, all at once.
func (r *row) handOut(ready func([]Derived) error) error {
	end, bytes := r.from, 0
	for end < r.to && r.jobs[end].left == 0 {
		bytes += r.jobs[end].keyLen
		end++
	}
	keys, err := secret.New(bytes)
	if err != nil {
		return fmt.Errorf("kdf: %w", err)
	}
	defer keys.Close()
	var derived []Derived
	rest := keys.Bytes()
	for _, j := range r.jobs[r.from:end] {
		key := rest[:j.keyLen:j.keyLen]
		rest = rest[j.keyLen:]
		for i := range r.chains[j.from:j.to] {
			copy(key[i*sha1.Size:], r.chains[j.from+i].T[:])
		}
		derived = append(derived, Derived{j.place, key})
	}
	r.from = end
	return ready(derived)
}
