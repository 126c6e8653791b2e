package kdf

import (
	"context"
	stdsha1 "crypto/sha1"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/pbkdf2"

	"serpcrypt/hash/sha1"
	"serpcrypt/internal/cpucycles"
	"serpcrypt/internal/hashes"
)

// sample is long beside what reading the time costs, and so short that an
// interruption spoils few.
const sample = time.Millisecond

// Speed measures, for about the time d, how many iterations a second Derive does
// for one key of keyLen bytes. The time is that of the processor, since on a
// busy machine the clock on the wall would make it seem slow. The error is an
// *hashes.UnknownError or that of ctx.
func Speed(ctx context.Context, hash string, keyLen int, d time.Duration) (float64, error) {
	if !strings.EqualFold(hash, "sha1") {
		return SingleLaneSpeed(ctx, hash, keyLen, d)
	}
	chains := make([]sha1.Chain, (keyLen+sha1.Size-1)/sha1.Size)
	for i := range chains {
		chains[i].Start(nil, nil, uint32(i))
	}
	return speed(ctx, d, cpucycles.ThreadTime, func(iterations int) {
		iterate(context.Background(), sha1.AutoChains, chains, iterations)
	})
}

// SingleLaneSpeed is as Speed, for other tools: they compute one output block
// after another. It stands for them with x/crypto/pbkdf2 over the hashes of the
// standard library.
func SingleLaneSpeed(ctx context.Context, hash string, keyLen int, d time.Duration) (float64, error) {
	newHash, err := hashes.New(hash)
	if err != nil {
		return 0, fmt.Errorf("kdf: %w", err)
	}
	if strings.EqualFold(hash, "sha1") {
		newHash = stdsha1.New
	}
	return speed(ctx, d, cpucycles.ThreadTime, func(iterations int) {
		pbkdf2.Key(nil, nil, iterations, keyLen, newHash)
	})
}

// speed asks for more and more iterations until they take a sample, and then
// again and again. Now is the clock.
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
	var all []time.Duration
	for start := now(); len(all) == 0 || now()-start < d; {
		taken, err := timed(iterations)
		if err != nil {
			return 0, err
		}
		all = append(all, taken)
	}
	slices.Sort(all)
	median := max(all[len(all)/2], 1)
	return float64(iterations) / median.Seconds(), nil
}
