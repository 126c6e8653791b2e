package kdf

import (
	"context"
	"math"
	"os"
	"runtime"
	"time"
)

// What new key slots get at most, unless told otherwise, as in cryptsetup.
const (
	maxNewMemory = 1 << 20 // KiB
	maxNewCPUs   = 4
)

// CalibrateArgon2 returns costs of a variant that make a derivation take about
// the time d here: as much memory as this allows with MinArgon2Time passes, but
// no more than 1 GiB and half of what is available, and then more passes.
//
// It takes a little longer than d. Errors are those of Argon2.Key.
func CalibrateArgon2(ctx context.Context, variant string, d time.Duration) (Argon2, error) {
	cpus := min(maxNewCPUs, runtime.GOMAXPROCS(0))
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

func (a Argon2) measure(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	key, err := a.Key(ctx, nil, make([]byte, 32), 32)
	if err != nil {
		return 0, err
	}
	key.Close()
	return time.Since(begin), nil
}

// Estimate returns about how long a derivation takes here, by one that takes
// milliseconds. Errors are those of Key, but there may be too little memory for
// the derivation itself.
func (a Argon2) Estimate(ctx context.Context) (time.Duration, error) {
	if err := a.Check(); err != nil {
		return 0, err
	}
	return a.estimate(func(part Argon2) (time.Duration, error) { return part.measure(ctx) })
}

func (a Argon2) estimate(measure func(Argon2) (time.Duration, error)) (time.Duration, error) {
	const (
		partMemory = 16 << 10 // KiB
		enough     = 20 * time.Millisecond
	)
	part := a
	part.Time, part.Memory = 1, max(min(a.Memory, partMemory), blocksPerLane*a.CPUs)
	for {
		taken, err := measure(part)
		if err != nil {
			return 0, err
		}
		if taken >= enough || part.Time == a.Time {
			const most = math.MaxInt64 / 2
			return time.Duration(min(float64(taken)*(a.Blocks()/part.Blocks()), most)), nil
		}
		if part.Time > a.Time/2 {
			part.Time = a.Time
		} else {
			part.Time *= 2
		}
	}
}
