package bench

import (
	"bytes"
	"context"
	stdpbkdf2 "crypto/pbkdf2"
	stdsha1 "crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"

	"serpcrypt/hash/sha1"
	"serpcrypt/internal/cpucycles"
	"serpcrypt/kdf"
)

const (
	stdlibKernel = "stdlib"

	// Enough that what a call costs beside its iterations does not show.
	kdfIterations = 10000

	maxSlots    = 8
	slotKeySize = 64 // bytes
)

var keySizes = []int{20, 32, 64}

// deriver is a PBKDF2 that takes part.
type deriver struct {
	kernel string
	derive func(jobs []kdf.Job, ready func([]kdf.Derived) error) error
}

// chainDerivers returns ours with SHA-1, by each kernel and by that which is the
// best for the number of blocks.
func chainDerivers() (list []deriver) {
	for _, k := range append(sha1.ChainKernels(), sha1.AutoChains) {
		list = append(list, deriver{k.String(), func(jobs []kdf.Job, ready func([]kdf.Derived) error) error {
			return kdf.DeriveSHA1(context.Background(), k, jobs, ready)
		}})
	}
	return list
}

func libraryDerivers(hash string) []deriver {
	return []deriver{{stdlibKernel, func(jobs []kdf.Job, ready func([]kdf.Derived) error) error {
		return kdf.Derive(context.Background(), hash, jobs, ready)
	}}}
}

// contestant derives as many keys, all from the same, and outputs the key. Any
// error leaves zeros, which do not pass.
func (d deriver) contestant(name string, job kdf.Job, keys int) contestant {
	jobs := make([]kdf.Job, keys)
	for i := range jobs {
		jobs[i] = job
	}
	output := make([]byte, job.KeyLen)
	return contestant{name, alone(func() {
		got := 0
		err := d.derive(jobs, func(ready []kdf.Derived) error {
			for _, key := range ready {
				if got == 0 {
					copy(output, key.Key)
				}
				if bytes.Equal(output, key.Key) {
					got++
				}
			}
			return nil
		})
		if err != nil || got != keys {
			clear(output)
		}
	}), output}
}

// stdlibContestant derives one key by crypto/pbkdf2.
func stdlibContestant(newHash func() hash.Hash, job kdf.Job) contestant {
	output := make([]byte, job.KeyLen)
	return contestant{"crypto/pbkdf2", alone(func() {
		key, _ := stdpbkdf2.Key(newHash, string(job.Password), job.Salt, job.Iterations, job.KeyLen)
		copy(output, key)
	}), output}
}

func testJob(keyLen int) kdf.Job {
	return kdf.Job{Password: testBytes(16), Salt: testBytes(32), Iterations: kdfIterations, KeyLen: keyLen}
}

func kdfContests(report *Report, _ Options) ([]contest, error) {
	var contests []contest
	for _, h := range []struct {
		name string
		std  func() hash.Hash
		ours []deriver
	}{
		{"sha1", stdsha1.New, chainDerivers()},
		{"sha256", sha256.New, libraryDerivers("sha256")},
		{"sha512", sha512.New, libraryDerivers("sha512")},
	} {
		for _, size := range keySizes {
			job := testJob(size)
			c := contest{
				what:        fmt.Sprintf("pbkdf2 with %s for %d bytes", h.name, size),
				contestants: []contestant{stdlibContestant(h.std, job)},
			}
			for _, d := range h.ours {
				c.contestants = append(c.contestants, d.contestant("kdf by "+d.kernel, job, 1))
			}
			c.report = func(costs []cpucycles.Cost) {
				add := func(kernel string, cost cpucycles.Cost) {
					s := speedOf(kdfIterations, cost, costs[0])
					report.KDF = append(report.KDF, KDFResult{
						Suite: "kdf", Hash: h.name, Kernel: kernel, Bytes: size,
						IterationsPerSecond: s.perSecond, RatioToStdlib: s.ratio,
					})
				}
				if h.ours[0].kernel != stdlibKernel {
					add(stdlibKernel, costs[0])
				}
				for i, d := range h.ours {
					add(d.kernel, costs[1+i])
				}
			}
			contests = append(contests, c)
		}
	}
	return contests, nil
}

// unlockContests derive the keys of one to eight key slots of equal cost, in one
// thread. What crypto/pbkdf2 computes is only compared.
func unlockContests(report *Report, _ Options) ([]contest, error) {
	var contests []contest
	job := testJob(slotKeySize)
	for _, d := range chainDerivers() {
		c := contest{
			what:        "unlocking by " + d.kernel,
			contestants: []contestant{stdlibContestant(stdsha1.New, job)},
		}
		for slots := 1; slots <= maxSlots; slots++ {
			c.contestants = append(c.contestants, d.contestant(fmt.Sprintf("kdf for %d slots", slots), job, slots))
		}
		c.report = func(costs []cpucycles.Cost) {
			costs = costs[1:]
			for i, cost := range costs {
				s := speedOf(kdfIterations, cost, costs[0])
				report.Unlock = append(report.Unlock, UnlockResult{
					Suite: "unlock", Kernel: d.kernel, Slots: 1 + i,
					IterationsPerSecond: s.perSecond,
					TimeRatioToOneSlot:  roundTo(cost.Nanoseconds/costs[0].Nanoseconds, 1000),
				})
			}
		}
		contests = append(contests, c)
	}
	return contests, nil
}

// kdfTables has a row for each kernel.
func kdfTables(results []KDFResult) (tables []*table) {
	if len(results) == 0 {
		return nil
	}
	add := func(what string, cell func(KDFResult) string) {
		tables = append(tables, newTable("pbkdf2 by length of the key, "+what, "hash", results, func(x KDFResult) (row, column, _ string) {
			return x.Hash + " " + x.Kernel, inBytes(x.Bytes), cell(x)
		}))
	}
	add("speed ratios to the standard library", func(x KDFResult) string { return asRatio(x.RatioToStdlib) })
	add("million iterations per second", func(x KDFResult) string { return asMillions(x.IterationsPerSecond) })
	return tables
}

// unlockTables has a row for each kernel and a column for each number of slots.
func unlockTables(results []UnlockResult) (tables []*table) {
	if len(results) == 0 {
		return nil
	}
	add := func(what string, cell func(UnlockResult) string) {
		tables = append(tables, newTable("unlocking by number of key slots, "+what, "kernel", results, func(x UnlockResult) (row, column, _ string) {
			return x.Kernel, fmt.Sprint(x.Slots), cell(x)
		}))
	}
	add("million iterations per second of each", func(x UnlockResult) string { return asMillions(x.IterationsPerSecond) })
	add("time ratios to one slot", func(x UnlockResult) string { return asRatio(x.TimeRatioToOneSlot) })
	return tables
}

func asMillions(x float64) string { return fmt.Sprintf("%.3f", x/1e6) }
