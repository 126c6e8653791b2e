// Package kdf derives keys from passphrases.
package kdf

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"serpcrypt/hash/sha1"
	"serpcrypt/internal/hashes"
	"serpcrypt/internal/secret"
)

const (
	// MinIterations is the least that new key slots get (RFC 8018, section 4.2,
	// recommends at least 1000).
	MinIterations = 1000
	// MaxIterations is the most that fits the 32-bit field of a LUKS header,
	// and an int.
	MaxIterations = min(math.MaxUint32, math.MaxInt)
)

// Job is a key to be derived by PBKDF2-HMAC (RFC 8018, section 5.2).
type Job struct {
	Password, Salt []byte
	Iterations     int // 1 to MaxIterations
	KeyLen         int // bytes, at least 1
}

// Derived is a key that is ready. It is wiped as soon as the function that was
// given it returns.
type Derived struct {
	Job int // its place among the jobs
	Key []byte
}

// PBKDF2 derives one key, as Derive does.
func PBKDF2(ctx context.Context, hash string, job Job) (*secret.Buffer, error) {
	var key *secret.Buffer
	err := Derive(ctx, hash, []Job{job}, func(ready []Derived) (err error) {
		key, err = secret.Copy(ready[0].Key)
		return err
	})
	return key, err
}

// Derive derives keys with the named hash, those of fewer iterations first, and
// calls ready in the same goroutine as soon as there are any; several at once
// if they become ready in the same moment.
//
// With SHA-1, all output blocks of all jobs are computed side by side, as far as
// that takes less time than one after another. All that is secret lies in locked
// memory and is wiped; how the kernels keep that is said in package sha1.
//
// Other hashes go through golang.org/x/crypto/pbkdf2, job by job, and each hash
// length of output begun costs all the iterations again. What that works with
// lies in ordinary memory: pads, states, outcomes and key are wiped, but copies
// of the password that the library makes are not. The process that derives such
// a key should end soon after.
//
// When ctx is done, Derive returns its error within a millisecond or so. Other
// errors are an *hashes.UnknownError, one about a job that is not possible, and
// what ready returns, which ends the work.
func Derive(ctx context.Context, hash string, jobs []Job, ready func([]Derived) error) error {
	if isSHA1(hash) {
		return DeriveSHA1(ctx, sha1.DefaultChains(), jobs, ready)
	}
	newHash, err := hashes.New(hash)
	if err != nil {
		return fmt.Errorf("kdf: %w", err)
	}
	order, err := cheapestFirst(jobs)
	if err != nil {
		return err
	}
	return deriveInTurn(ctx, newHash, jobs, order, ready)
}

func isSHA1(hash string) bool { return strings.EqualFold(hash, "sha1") }

// DeriveSHA1 is as Derive, for SHA-1 and with kernel k. The error is a
// *sha1.KernelError if CPU or build cannot run that.
func DeriveSHA1(ctx context.Context, k sha1.ChainKernel, jobs []Job, ready func([]Derived) error) error {
	if err := sha1.Iterate(k, nil, 0); err != nil {
		return fmt.Errorf("kdf: %w", err)
	}
	order, err := cheapestFirst(jobs)
	if err != nil {
		return err
	}
	return deriveSideBySide(ctx, k, jobs, order, ready)
}

// cheapestFirst returns the places of the jobs in the order of their
// iterations, or what is wrong with a job.
func cheapestFirst(jobs []Job) ([]int, error) {
	order := make([]int, len(jobs))
	for i, job := range jobs {
		if job.Iterations < 1 || job.Iterations > MaxIterations {
			return nil, fmt.Errorf("kdf: %d iterations (allowed: 1 to %d)", job.Iterations, MaxIterations)
		}
		if job.KeyLen < 1 {
			return nil, fmt.Errorf("kdf: key of %d bytes", job.KeyLen)
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Iterations, jobs[b].Iterations) })
	return order, nil
}
