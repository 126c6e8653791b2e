package luks1

import "time"

// TrialTime measures what it takes, in processor time and beside the
// derivations, to try a key slot of a container with these parameters. The error
// is that of New.
func TrialTime(p Params) (time.Duration, error) {
	h, err := New(p)
	if err != nil {
		return 0, err
	}
	return h.material(&h.Slots[0]).OpenTime(p.KeyBytes)
}
