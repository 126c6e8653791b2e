package volume

import (
	"cmp"
	"slices"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/fsprobe"
)

// Report is what Verify has found, check by check in the order of the
// constants below.
type Report struct {
	Checks []Check

	Header     *Header        // nil if there is none
	WholeSlots []int          // the key slots in use whose material shows no damage
	Slot       int            // the key slot that opened, or -1
	Kernel     serpent.Kernel // that was compared with the portable one
	Bytes      int64          // of the payload that were read
	FileSystem *fsprobe.Found // what the volume holds, nil if that is unknown
}

// Check is one thing that has been looked at.
type Check struct {
	Name   string
	Result Result
	Faults []*FormatError // not all if there are very many; by offset
	More   int            // how many were left out
}

// The names of checks.
const (
	CheckHeader     = "header"      // every field
	CheckMaterial   = "key slots"   // the material of each in use looks random
	CheckKeySlot    = "key slot"    // opens with the passphrase
	CheckDigest     = "digest"      // of the volume key
	CheckPayload    = "payload"     // every sector, decrypted by two kernels
	CheckFileSystem = "file system" // lies within the volume
)

// Result is how a check went.
type Result string

const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped" // nothing to look at, or not possible after a failure
)

// maxFaults is how many faults of a payload are kept.
const maxFaults = 100

// Err returns the first fault found, or nil if there is none.
func (r *Report) Err() error {
	for _, c := range r.Checks {
		if len(c.Faults) > 0 {
			return c.Faults[0]
		}
	}
	return nil
}

// judge adds a check that was made.
func (r *Report) judge(name string, faults ...*FormatError) *Check {
	result := Passed
	if len(faults) > 0 {
		result = Failed
	}
	slices.SortStableFunc(faults, func(a, b *FormatError) int { return cmp.Compare(a.Offset, b.Offset) })
	r.Checks = append(r.Checks, Check{Name: name, Result: result, Faults: faults})
	return &r.Checks[len(r.Checks)-1]
}

// skip adds checks that were not made.
func (r *Report) skip(names ...string) {
	for _, name := range names {
		r.Checks = append(r.Checks, Check{Name: name, Result: Skipped})
	}
}
