// Package bench measures how fast the cipher, the hash, the key derivation and
// the ways to a volume are on this machine. It times the exported calls that
// containers use, and checks all that they compute against other code.
package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"time"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/cpucycles"
)

// Options say what to measure.
type Options struct {
	Suites   []string              // empty: all but "volume"
	Kernel   serpent.Kernel        // the only one to report on; Auto: all that there are
	Each     time.Duration         // for each measurement
	Progress func(done, total int) // tells how many measurements are through; may be nil
	Load     func() *exec.Cmd      // a program that does load.Serve on its standard input and output
}

// DefaultEach gives medians of some hundred batches.
const DefaultEach = 100 * time.Millisecond

// Report is all that was measured.
type Report struct {
	Machine Machine
	Serpent []SerpentResult
	Sectors []SectorsResult
	SHA1    []SHA1Result
	KDF     []KDFResult
	Unlock  []UnlockResult
	Volume  []VolumeResult

	sha1Kernel string // the chosen one
}

// SerpentResult is the speed of one mode and direction with one size of
// request. A request is one call with one IV, as a sector is.
type SerpentResult struct {
	Suite          string  `json:"suite"` // "serpent"
	Kernel         string  `json:"kernel"`
	Mode           string  `json:"mode"`
	Op             string  `json:"op"` // "enc" or "dec"
	Bytes          int     `json:"bytes"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	CyclesPerByte  float64 `json:"cycles_per_byte,omitempty"` // 0: not known on this architecture
	RatioToGeneric float64 `json:"ratio_to_generic"`          // of speeds, in the same run
}

// SectorsResult is the speed of a run of sectors through cipher/modes, as
// containers are read and written. Several threads each have an equal share of
// the run, and do it over and over without waiting for each other. The times of
// runs that several threads share, and of the same runs in one thread beside
// them, are elapsed ones; all others are processor times.
type SectorsResult struct {
	Suite          string  `json:"suite"` // "sectors"
	Kernel         string  `json:"kernel"`
	Mode           string  `json:"mode"`
	Op             string  `json:"op"` // "enc" or "dec"
	SectorSize     int     `json:"sector_size"`
	Bytes          int     `json:"bytes"` // of the run
	Threads        int     `json:"threads"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	CyclesPerByte  float64 `json:"cycles_per_byte,omitempty"` // of all cores together: elapsed cycles times threads
	RatioToGeneric float64 `json:"ratio_to_generic"`          // of speeds, with as many threads
}

// SHA1Result is the speed of hashing messages of one size.
type SHA1Result struct {
	Suite          string  `json:"suite"`  // "sha1"
	Kernel         string  `json:"kernel"` // "stdlib" is crypto/sha1
	Bytes          int     `json:"bytes"`
	UpdateBytes    int     `json:"update_bytes"` // in each Write
	BytesPerSecond float64 `json:"bytes_per_second"`
	CyclesPerByte  float64 `json:"cycles_per_byte,omitempty"`
	RatioToStdlib  float64 `json:"ratio_to_stdlib"`
}

// KDFResult is the speed of PBKDF2 for keys of one size.
type KDFResult struct {
	Suite               string  `json:"suite"` // "kdf"
	Hash                string  `json:"hash"`
	Kernel              string  `json:"kernel"` // of the hash; "auto": the best for the length of the key
	Bytes               int     `json:"bytes"`  // of the key
	IterationsPerSecond float64 `json:"iterations_per_second"`
	RatioToStdlib       float64 `json:"ratio_to_stdlib"` // to crypto/pbkdf2 with the hash of the standard library
}

// UnlockResult is the speed of PBKDF2 with SHA-1 for several key slots of 64
// bytes, on one core.
type UnlockResult struct {
	Suite               string  `json:"suite"`  // "unlock"
	Kernel              string  `json:"kernel"` // of SHA-1; "auto": the best for the number of slots
	Slots               int     `json:"slots"`
	IterationsPerSecond float64 `json:"iterations_per_second"` // of each slot
	TimeRatioToOneSlot  float64 `json:"time_ratio_to_one_slot"`
}

// VolumeResult is the speed of requests on one of the ways to a file, several
// of them at a time.
type VolumeResult struct {
	Suite          string  `json:"suite"`   // "volume"
	Storage        string  `json:"storage"` // where the files lie: "tmpfs" or "disk"
	Path           string  `json:"path"`    // "file", "fuse", or "ext4" in a loop device over that
	Kernel         string  `json:"kernel"`  // "null" copies, "none" is without a volume
	Op             string  `json:"op"`      // "read" or "write"
	Pattern        string  `json:"pattern"` // "sequential" or "random"
	Bytes          int     `json:"bytes"`   // of a request
	Depth          int     `json:"depth"`   // requests at a time
	BytesPerSecond float64 `json:"bytes_per_second"`
	RatioToNull    float64 `json:"ratio_to_null"` // of speeds on the same path; of the file, to that of fuse
	// AddedCyclesPerByte is what the server takes on all cores beyond what it
	// takes with "null". Nil: not known on this architecture, or no cipher.
	AddedCyclesPerByte *float64 `json:"added_cycles_per_byte,omitempty"`
}

// MarshalJSON puts the results of all suites into one list.
func (r *Report) MarshalJSON() ([]byte, error) {
	results := []any{}
	for _, x := range r.Serpent {
		results = append(results, x)
	}
	for _, x := range r.Sectors {
		results = append(results, x)
	}
	for _, x := range r.SHA1 {
		results = append(results, x)
	}
	for _, x := range r.KDF {
		results = append(results, x)
	}
	for _, x := range r.Unlock {
		results = append(results, x)
	}
	for _, x := range r.Volume {
		results = append(results, x)
	}
	return json.Marshal(struct {
		Machine Machine `json:"machine"`
		Results []any   `json:"results"`
	}{r.Machine, results})
}

// MismatchError is output that differs from that of the code it is compared
// with: the processor or the program is at fault.
type MismatchError struct{ What string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("bench: wrong output: %s", e.What)
}

// UnknownSuiteError is the name of a suite that there is not.
type UnknownSuiteError struct{ Name string }

func (e *UnknownSuiteError) Error() string {
	return fmt.Sprintf("bench: unknown suite %q (known: %s)", e.Name, strings.Join(Suites(), ", "))
}

type suite struct {
	name     string
	partOf   string // the suite that brings this one along
	asked    bool   // only if asked for: it takes long
	contests func(r *Report, o Options) ([]contest, error)
}

var suites = []suite{
	{name: "serpent", contests: serpentContests},
	{name: "sectors", partOf: "serpent", contests: sectorsContests},
	{name: "sha1", contests: sha1Contests},
	{name: "kdf", contests: kdfContests},
	{name: "unlock", partOf: "kdf", contests: unlockContests},
	{name: "volume", asked: true, contests: volumeContests},
}

func (s suite) isIn(chosen []string) bool {
	return len(chosen) == 0 && !s.asked || slices.Contains(chosen, s.name) || slices.Contains(chosen, s.partOf)
}

// Suites returns the names that Options.Suites may hold. "serpent" brings
// "sectors" along, and "kdf" "unlock".
func Suites() []string {
	var names []string
	for _, s := range suites {
		names = append(names, s.name)
	}
	return names
}

// Run measures. The error is an *UnknownSuiteError, a *MismatchError, that of
// ctx, or that of a kernel which this CPU lacks.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	for _, name := range o.Suites {
		if !slices.Contains(Suites(), name) {
			return nil, &UnknownSuiteError{name}
		}
	}
	report := &Report{Machine: ThisMachine()}
	var contests []contest
	defer func() {
		for _, c := range contests {
			if c.close != nil {
				err = errors.Join(err, c.close())
			}
		}
	}()
	for _, s := range suites {
		if !s.isIn(o.Suites) {
			continue
		}
		more, err := s.contests(report, o)
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		contests = append(contests, more...)
	}
	for i, c := range contests {
		if o.Progress != nil {
			o.Progress(i, len(contests))
		}
		if err := c.measure(ctx, o.Each); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// contest is the same work done by several contestants in turn.
type contest struct {
	what        string
	contestants []contestant // the first is what the others are compared with
	report      func(costs []cpucycles.Cost)
	close       func() error // may be nil

	// run, if not nil, does the measuring and the reporting instead.
	run func(ctx context.Context, each time.Duration) error
}

type contestant struct {
	name   string
	shares []func() // of the work, each for a thread of its own; they write to output
	output []byte
}

// alone is work that is not shared.
func alone(f func()) []func() { return []func(){f} }

func (c *contest) measure(ctx context.Context, each time.Duration) error {
	if c.run != nil {
		return c.run(ctx, each)
	}
	for _, x := range c.contestants {
		clear(x.output)
	}
	costs, err := c.costs(ctx, each)
	if err != nil {
		return err
	}
	reference := c.contestants[0]
	for _, x := range c.contestants {
		if !bytes.Equal(x.output, reference.output) {
			return &MismatchError{fmt.Sprintf("%s: %s computes other bytes than %s", c.what, x.name, reference.name)}
		}
		if allZero(x.output) {
			return &MismatchError{fmt.Sprintf("%s: %s computes nothing but zeros", c.what, x.name)}
		}
	}
	c.report(costs)
	return nil
}

func (c *contest) costs(ctx context.Context, each time.Duration) ([]cpucycles.Cost, error) {
	var functions []func()
	var works [][]func()
	shared := false
	for _, x := range c.contestants {
		functions = append(functions, x.shares[0])
		works = append(works, x.shares)
		shared = shared || len(x.shares) > 1
	}
	if shared {
		return cpucycles.MeasureParallel(ctx, each, works...)
	}
	return cpucycles.Measure(ctx, each, functions...)
}

func allZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// speed turns the cost of a call into what is reported of it, each with the
// digits that mean something.
type speed struct{ perSecond, cyclesPerUnit, ratio float64 }

// speedOf is for a call that handles a number of units, bytes or iterations.
func speedOf(units int, cost, reference cpucycles.Cost) speed {
	return speed{
		perSecond:     math.Round(float64(units) / cost.Nanoseconds * 1e9),
		cyclesPerUnit: roundTo(cost.Cycles/float64(units), 1000),
		ratio:         roundTo(reference.Nanoseconds/cost.Nanoseconds, 1000),
	}
}

func roundTo(x, fraction float64) float64 { return math.Round(x*fraction) / fraction }

// testBytes returns n bytes without a pattern that a cipher could like.
func testBytes(n int) []byte {
	p := make([]byte, n)
	rand.NewChaCha8([32]byte{}).Read(p)
	return p
}
