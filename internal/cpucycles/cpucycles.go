// Package cpucycles measures what calls cost in time and in cycles of the core.
//
// The core's clock changes from moment to moment and no portable counter shows
// it: the time-stamp counter of x86 runs at a rate of its own. So a chain of
// dependent instructions of known latency is timed before and after each
// measurement, and its time tells the clock.
package cpucycles

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// Cost is what one call takes.
type Cost struct {
	Nanoseconds float64
	Cycles      float64 // of the core's clock, 0 where that is not known
}

// Known tells whether the latency of the chain is known on this architecture.
const Known = multiplyLatency > 0

const (
	chainLength = 50000 // about 50 µs, beside which a reading of the time does not show
	chainCycles = chainLength * multiplyLatency

	// Batches are long beside the chain, and so short that the median does not
	// see those in which an interrupt or another program emptied the caches.
	minBatch = 200 * time.Microsecond

	// Beside this it does not show that waking a thread takes 0.1 ms on a
	// virtual machine.
	minParallelBatch = 10 * time.Millisecond

	minRounds = 3
)

// Measure calls the functions in turn, in batches, until each has had about
// the given time and at least three batches, and returns the median cost of a
// call of each. Since all of them run in every round, a change of clock or load
// meets them alike and their ratios hold. All times are processor times of the
// calling thread, so that other programs do not count. It returns early with
// the error of ctx when that is done.
func Measure(ctx context.Context, each time.Duration, functions ...func()) ([]Cost, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := meter{now: ThreadTime, chain: calibrationChain, minBatch: minBatch}
	var works []repeated
	for _, f := range functions {
		works = append(works, repeat(f))
	}
	return m.measure(ctx, each, works)
}

// MeasureParallel is as Measure, for works of several threads. A call of a work
// calls each of its functions once, each in a thread of its own. Within a batch
// the threads do not wait for each other. All times, and so the cycles, are
// elapsed ones: other programs do count.
func MeasureParallel(ctx context.Context, each time.Duration, works ...[]func()) ([]Cost, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := time.Now()
	m := meter{
		now:      func() time.Duration { return time.Since(start) },
		chain:    calibrationChain,
		minBatch: minParallelBatch,
	}
	var crews []repeated
	for _, functions := range works {
		c := newCrew(functions)
		defer c.dismiss()
		crews = append(crews, c.work)
	}
	return m.measure(ctx, each, crews)
}

// repeated is work that is done so many times.
type repeated func(calls int)

func repeat(f func()) repeated {
	return func(calls int) {
		for range calls {
			f()
		}
	}
}

type meter struct {
	now      func() time.Duration
	chain    func() // takes chainCycles
	minBatch time.Duration
}

func (m meter) measure(ctx context.Context, each time.Duration, works []repeated) ([]Cost, error) {
	calls := make([]int, len(works))
	for i, work := range works {
		var err error
		if calls[i], err = m.callsPerBatch(ctx, min(m.minBatch, each/minRounds), work); err != nil {
			return nil, err
		}
	}
	nanoseconds := make([][]float64, len(works))
	cycles := make([][]float64, len(works))
	end := m.now() + each*time.Duration(len(works))
	for round := 0; round < minRounds || m.now() < end; round++ {
		chainBefore := m.timeOfChain()
		for i, work := range works {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			start := m.now()
			work(calls[i])
			perCall := float64(m.now()-start) / float64(calls[i])
			chainAfter := m.timeOfChain()
			nanoseconds[i] = append(nanoseconds[i], perCall)
			// Whatever disturbs a chain makes it longer, and cycles seem fewer.
			if shorter := min(chainBefore, chainAfter); shorter > 0 {
				cycles[i] = append(cycles[i], perCall*chainCycles/float64(shorter))
			}
			chainBefore = chainAfter
		}
	}
	costs := make([]Cost, len(works))
	for i := range costs {
		costs[i] = Cost{Nanoseconds: Median(nanoseconds[i]), Cycles: Median(cycles[i])}
	}
	return costs, nil
}

func (m meter) timeOfChain() time.Duration {
	start := m.now()
	m.chain()
	return m.now() - start
}

// callsPerBatch finds how many calls fill the given time.
func (m meter) callsPerBatch(ctx context.Context, batch time.Duration, work repeated) (int, error) {
	for calls := 1; ; calls *= 2 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		before := m.now()
		work(calls)
		if m.now()-before >= batch {
			return calls, nil
		}
	}
}

// Median returns the middle of the values, and 0 if there are none. It sorts
// them.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func calibrationChain() { multiplyChain(chainLength) }

// multiplyChain multiplies n times, in tens, each time waiting for the last.
//
//go:noinline
func multiplyChain(n int) {
	x := uint32(3)
	for range n / 10 {
		x *= x
		x *= x
		x *= x
		x *= x
		x *= x
		x *= x
		x *= x
		x *= x
		x *= x
		x *= x
	}
	runtime.KeepAlive(x) // so that no compiler leaves the chain out
}

// Clock returns the cycles of the core in a nanosecond at this moment, or 0
// where that is not known.
func Clock() float64 {
	if !Known {
		return 0
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := meter{now: ThreadTime, chain: calibrationChain}
	// Whatever disturbs a chain makes it longer.
	return chainCycles / float64(min(m.timeOfChain(), m.timeOfChain(), m.timeOfChain()))
}
