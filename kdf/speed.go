package kdf

import (
	"context"
	stdsha1 "crypto/sha1"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/crypto/pbkdf2"

	"serpcrypt/hash/sha1"
	"serpcrypt/internal/cpucycles"
	"serpcrypt/internal/hashes"
)

const (
	sample = time.Millisecond // long beside what reading the time costs

	// The middle one of so many periods counts, since other programs slow a thread
	// down even in its own processor time: those that share the core with it, and
	// all others by emptying the caches. What goes on all the time counts, as it
	// will when a key is derived; a short burst does not.
	maxPeriods = 5
)

// Speed measures, for about the time d, how many iterations a second Derive does
// for one key of keyLen bytes. The time is that of the processor, since on a
// busy machine the clock on the wall would make it seem slow. The error is an
// *hashes.UnknownError or that of ctx.
func Speed(ctx context.Context, hash string, keyLen int, d time.Duration) (float64, error) {
	newHash, err := hashes.New(hash)
	if err != nil {
		return 0, fmt.Errorf("kdf: %w", err)
	}
	run := func(iterations int) {
		key, err := deriveByLibrary(context.Background(), newHash, Job{Iterations: iterations, KeyLen: keyLen})
		if err == nil {
			key.Close()
		}
	}
	if isSHA1(hash) {
		chains := make([]sha1.Chain, (keyLen+sha1.Size-1)/sha1.Size)
		for i := range chains {
			chains[i].Start(nil, nil, uint32(i+1))
		}
		run = func(iterations int) { iterate(context.Background(), sha1.DefaultChains(), chains, iterations) }
	}
	return speed(ctx, d, cpucycles.ThreadTime, run)
}

// SingleLaneSpeed is as Speed with SHA-1, for tools that compute one output
// block after another. It stands for them with x/crypto/pbkdf2 and crypto/sha1.
func SingleLaneSpeed(ctx context.Context, keyLen int, d time.Duration) (float64, error) {
	return speed(ctx, d, cpucycles.ThreadTime, func(iterations int) {
		pbkdf2.Key(nil, nil, iterations, keyLen, stdsha1.New)
	})
}

// speed asks for more and more iterations until they take a sample, and then
// again and again for the time d. Now is the clock.
func speed(ctx context.Context, d time.Duration, now func() time.Duration, run func(iterations int)) (float64, error) {
	// Each thread has a processor time of its own.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	timed := func(iterations int) (time.Duration, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		before := now()
		run(iterations)
		return now() - before, nil
	}
	iterations := 64
	for ; iterations < MaxIterations/2; iterations *= 2 {
		if taken, err := timed(iterations); err != nil {
			return 0, err
		} else if taken >= sample {
			break
		}
	}
	periods := min(max(1, int(d/sample)), maxPeriods)
	speeds := make([]float64, periods)
	for i := range speeds {
		var total time.Duration
		done := 0
		for done == 0 || total < d/time.Duration(periods) {
			taken, err := timed(iterations)
			if err != nil {
				return 0, err
			}
			total += taken
			done += iterations
		}
		speeds[i] = float64(done) / max(total, 1).Seconds()
	}
	slices.Sort(speeds)
	return speeds[periods/2], nil
}

// Seconds returns so many, or a hundred years if they are more.
func Seconds(n float64) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	return time.Duration(min(n*float64(time.Second), float64(most)))
}
