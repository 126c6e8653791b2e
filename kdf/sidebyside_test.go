package kdf

import (
	"bytes"
	"context"
	stdsha1 "crypto/sha1"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/crypto/pbkdf2"

	"serpcrypt/hash/sha1"
)

// randomJobs returns jobs that have so many chains together, of few or of
// nearly equal counts of iterations.
func randomJobs(r *rand.Rand, chains int) []Job {
	var jobs []Job
	least := 1 + r.IntN(20)
	for chains > 0 {
		blocks := 1 + r.IntN(min(chains, 7))
		chains -= blocks
		jobs = append(jobs, Job{
			Password:   randomBytes(r, r.IntN(200)),
			Salt:       randomBytes(r, r.IntN(100)),
			Iterations: least + r.IntN(4)*r.IntN(30),
			KeyLen:     blocks*sha1.Size - r.IntN(sha1.Size),
		})
	}
	return jobs
}

func TestEveryNumberOfChains(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, k := range sha1.ChainKernels() {
		for chains := 1; chains <= 40; chains++ {
			t.Run(fmt.Sprintf("%v,chains=%d", k, chains), func(t *testing.T) {
				for range 3 {
					checkJobs(t, k, randomJobs(r, chains))
				}
			})
		}
	}
}

// checkJobs compares all keys with those of x/crypto and looks at their order.
func checkJobs(t *testing.T, k sha1.ChainKernel, jobs []Job) {
	t.Helper()
	seen := make([]bool, len(jobs))
	last := 0
	err := DeriveSHA1(background, k, jobs, func(ready []Derived) error {
		for _, d := range ready {
			j := jobs[d.Job]
			if seen[d.Job] {
				t.Errorf("job %d: ready twice", d.Job)
			}
			seen[d.Job] = true
			if j.Iterations < last {
				t.Errorf("%d iterations are ready after %d", j.Iterations, last)
			}
			last = j.Iterations
			if want := pbkdf2.Key(j.Password, j.Salt, j.Iterations, j.KeyLen, stdsha1.New); !bytes.Equal(d.Key, want) {
				t.Errorf("password %x, salt %x, iterations %d: got %x, want %x", j.Password, j.Salt, j.Iterations, d.Key, want)
			}
		}
		return nil
	})
	if err != nil || slices.Contains(seen, false) {
		t.Errorf("%v; ready: %v", err, seen)
	}
}

// TestMoreJobsThanLanes: those that wait take the places of those that end.
func TestMoreJobsThanLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range sha1.ChainKernels() {
		for _, chains := range []int{50, 100, 300} {
			checkJobs(t, k, randomJobs(r, chains))
		}
	}
}

// lanes32 are the costs of a kernel of four lanes and of one of 32.
func lanes32(chains int) int {
	cost := 0
	for ; chains > 8; chains -= 32 {
		cost += 1000
	}
	for ; chains > 0; chains -= 4 {
		cost += 400
	}
	return cost
}

// rowOf returns a row of jobs of four chains each.
func rowOf(iterations ...int) *row {
	r := &row{cycles: lanes32}
	for i, n := range iterations {
		r.jobs = append(r.jobs, rowJob{place: i, keyLen: 80, left: n, from: 4 * i, to: 4*i + 4})
	}
	r.chains = make([]sha1.Chain, 4*len(iterations))
	r.plan()
	return r
}

// TestRepacking: which jobs are under way together, and how far they go.
func TestRepacking(t *testing.T) {
	type step struct{ from, to, left int } // left to the last one of them
	for _, c := range []struct {
		name       string
		iterations []int
		want       []step
	}{
		{"equal", []int{5, 5, 5}, []step{{0, 3, 0}}},
		{"different", []int{5, 7, 7, 100}, []step{{0, 4, 95}, {1, 4, 93}, {3, 4, 0}}},
		{"as many as there are lanes", []int{1, 2, 3, 4, 5, 6, 7, 8}, []step{{0, 8, 7}, {1, 8, 6}, {2, 8, 5}, {3, 8, 4}, {4, 8, 3}, {5, 8, 2}, {6, 8, 1}, {7, 8, 0}}},
		{"more", []int{5, 5, 9, 9, 9, 9, 9, 9, 10, 12}, []step{{0, 1, 0}, {1, 2, 0}, {2, 10, 3}, {8, 10, 2}, {9, 10, 0}}},
		{"too few for the wide kernel", []int{5, 7}, []step{{0, 1, 0}, {1, 2, 0}}},
		{"nothing to do", []int{0, 0, 3}, []step{{0, 3, 3}, {2, 3, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rowOf(c.iterations...)
			var got []step
			for r.from < len(r.jobs) {
				if err := r.advance(background); err != nil {
					t.Fatal(err)
				}
				got = append(got, step{r.from, r.to, r.jobs[r.to-1].left})
				r.handOut(func([]Derived) error { return nil })
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

const forEver = MaxIterations // an hour or more

// TestSlowJobHoldsUpNoOther: the quick one is ready, the other will never be.
func TestSlowJobHoldsUpNoOther(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	jobs := []Job{{Iterations: forEver, KeyLen: 64}, {Iterations: 1000, KeyLen: 64}}
	for _, hash := range []string{"sha1", "sha256"} {
		enough := errors.New("enough")
		err := Derive(ctx, hash, jobs, func(ready []Derived) error {
			if len(ready) != 1 || ready[0].Job != 1 {
				t.Errorf("%s: ready: %v", hash, ready)
			}
			return enough
		})
		if err != enough {
			t.Errorf("%s: got %v, want what ready returned", hash, err)
		}
	}
}

// TestDeriveStopsWithContext: while nothing is ready, and will not be.
func TestDeriveStopsWithContext(t *testing.T) {
	for _, hash := range []string{"sha1", "sha256", "sha512"} {
		ctx, cancel := context.WithCancel(background)
		jobs := []Job{{Iterations: 1, KeyLen: 64}, {Iterations: forEver, KeyLen: 64}}
		err := Derive(ctx, hash, jobs, func([]Derived) error {
			go cancel()
			return nil
		})
		if err != context.Canceled {
			t.Errorf("%s: got %v, want %v", hash, err, context.Canceled)
		}
	}
}

// looks is a context that is done when it has been looked at often enough.
type looks struct {
	context.Context
	left int
}

func (l *looks) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestLooksAtContextAllTheTime: no more than a step goes by without.
func TestLooksAtContextAllTheTime(t *testing.T) {
	for chains := 1; chains <= 40; chains++ {
		const looked = 5
		ctx := &looks{background, looked}
		row := make([]sha1.Chain, chains)
		for i := range row {
			row[i].Start([]byte("password"), nil, uint32(i+1))
		}
		want := slices.Clone(row)
		if err := iterate(ctx, sha1.AutoChains, row, forEver); err != context.Canceled {
			t.Fatalf("got %v", err)
		}
		sha1.Iterate(sha1.AutoChains, want, looked*(lookAfter/sha1.AutoChains.Cycles(chains)))
		if !slices.Equal(row, want) {
			t.Errorf("%d chains: not what %d steps make of them", chains, looked)
		}
	}
}
