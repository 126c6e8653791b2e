package kdf

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"serpcrypt/internal/cpucycles"
)

const (
	// Shorter runs than this are not trusted.
	measurable = 40 * time.Millisecond
	samples    = 5
)

// Calibrate returns the number of iterations, from MinIterations to
// MaxIterations, with which deriving keyLen bytes by PBKDF2 with the named hash
// takes the processor time d here. Processor time, since on a busy machine the
// clock on the wall would give a lower number and a weaker key. It takes about
// half a second itself and returns early with the error of ctx when that is
// done.
func Calibrate(ctx context.Context, hash string, keyLen int, d time.Duration) (int, error) {
	// Processor time is counted for each thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	password, salt := make([]byte, 16), make([]byte, 32)
	return calibrate(ctx, d, func(iterations int) (time.Duration, error) {
		before := cpucycles.ThreadTime()
		key, err := PBKDF2(hash, password, salt, iterations, keyLen)
		if err != nil {
			return 0, err
		}
		key.Close()
		return cpucycles.ThreadTime() - before, nil
	})
}

// calibrate asks cost, which runs a number of iterations and tells how long
// they took, until it knows how many take d.
func calibrate(ctx context.Context, d time.Duration, cost func(iterations int) (time.Duration, error)) (int, error) {
	if d <= 0 {
		return 0, fmt.Errorf("kdf: iteration time of %v", d)
	}
	run := func(iterations int) (time.Duration, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return cost(iterations)
	}
	iterations := MinIterations
	for {
		t, err := run(iterations)
		if err != nil {
			return 0, err
		}
		if t >= measurable || iterations > MaxIterations/2 {
			break
		}
		iterations *= 2
	}
	var taken [samples]time.Duration
	for i := range taken {
		t, err := run(iterations)
		if err != nil {
			return 0, err
		}
		taken[i] = t
	}
	slices.Sort(taken[:])
	median := max(taken[samples/2], 1)
	wanted := float64(iterations) * float64(d) / float64(median)
	return int(min(max(wanted, MinIterations), MaxIterations)), nil
}
