package kdf

import (
	"context"
	"os"
	"runtime"
	"time"

	"serpcrypt/internal/cpucycles"
)

// What new key slots get at most, unless told otherwise, as in cryptsetup.
const (
	maxNewMemory = 1 << 20 // KiB
	maxNewCPUs   = 4
)

// DefaultArgon2CPUs returns how many lanes new key slots get here, unless told
// otherwise.
func DefaultArgon2CPUs() int { return min(maxNewCPUs, runtime.GOMAXPROCS(0)) }

// CalibrateArgon2 returns costs of a variant that make a derivation in so many
// lanes take about the time d here: as much memory as this allows with
// MinArgon2Time passes, but
// no more than 1 GiB and half of what is available, and then more passes. It is
// the time of processors that do nothing else.
//
// It takes a little longer than d. Errors are those of Argon2.Key.
func CalibrateArgon2(ctx context.Context, variant string, cpus int, d time.Duration) (Argon2, error) {
	memory := min(maxNewMemory<<10, availableMemory(os.DirFS("/"))/2)
	memory = mappable(memory, canMap) >> 10
	most := Argon2{variant, MaxArgon2Time, int(max(memory, minMemory(cpus))), cpus}
	return calibrate(most, d, func(a Argon2) (time.Duration, error) { return a.measure(ctx) })
}

func minMemory(cpus int) int64 { return int64(max(MinArgon2Memory, blocksPerLane*cpus)) }

// firstMemory is as little as tells about more of it: it fits into no cache.
const firstMemory = 64 << 10 // KiB

// calibrate measures twice, as larger memory is slower: with little memory, and
// with what seems right then.
func calibrate(most Argon2, d time.Duration, measure func(Argon2) (time.Duration, error)) (Argon2, error) {
	a := most
	a.Time, a.Memory = MinArgon2Time, min(most.Memory, firstMemory)
	for range 2 {
		taken, err := measure(a)
		if err != nil {
			return Argon2{}, err
		}
		blocks := a.Blocks() * (float64(d) / float64(max(taken, 1)))
		a.Memory = int(max(min(blocks/MinArgon2Time, float64(most.Memory)), float64(minMemory(most.CPUs))))
		a.Time = int(max(min(blocks/float64(a.Memory), float64(most.Time)), MinArgon2Time))
	}
	return a, nil
}

// Blocks returns how many blocks a derivation computes.
func (a Argon2) Blocks() float64 { return float64(a.Time) * float64(a.Memory) }

// measure returns the time that a derivation takes if each lane has a processor
// for itself, as far as there are so many. It counts what the processors did: on a
// busy machine the clock on the wall would make it seem slow, and what is made by
// it would be weak.
func (a Argon2) measure(ctx context.Context) (time.Duration, error) {
	before := cpucycles.ProcessTime()
	key, err := a.Key(ctx, nil, make([]byte, 32), 32)
	if err != nil {
		return 0, err
	}
	key.Close()
	return (cpucycles.ProcessTime() - before) / time.Duration(min(a.CPUs, runtime.GOMAXPROCS(0))), nil
}

// Estimate returns about how long a derivation takes here, by some that take
// milliseconds. Errors are those of Key, but there may be too little memory for
// the derivation itself.
func (a Argon2) Estimate(ctx context.Context) (time.Duration, error) {
	if err := a.Check(); err != nil {
		return 0, err
	}
	return a.estimate(func(part Argon2) (time.Duration, error) { return part.measure(ctx) })
}

// estimate measures a part of the memory. The first pass gets it from the system,
// which takes as long as some passes do; so the others are told apart from it.
func (a Argon2) estimate(measure func(Argon2) (time.Duration, error)) (time.Duration, error) {
	const (
		partMemory = 32 << 10 // KiB
		enough     = 20 * time.Millisecond
	)
	part := a
	part.Time, part.Memory = min(a.Time, MinArgon2Time), max(min(a.Memory, partMemory), blocksPerLane*a.CPUs)
	taken, err := measure(part)
	for err == nil && taken < enough && part.Time < a.Time {
		part.Time = min(a.Time, 2*part.Time)
		taken, err = measure(part)
	}
	if err != nil {
		return 0, err
	}
	total := float64(taken)
	if part.Time < a.Time {
		once := part
		once.Time = 1
		first, err := measure(once)
		if err != nil {
			return 0, err
		}
		total += float64(max(taken-first, 0)) / float64(part.Time-1) * float64(a.Time-part.Time)
	}
	return Seconds(total / 1e9 * float64(a.Memory) / float64(part.Memory)), nil
}
