package volume

import (
	"context"
	"strings"
	"time"

	"serpcrypt/hash/sha1"
	"serpcrypt/kdf"
	"serpcrypt/volume/luks1"
)

// UnlockSpeed tells how long key slots take to open on this machine, in the time
// of one processor.
type UnlockSpeed struct {
	hash     string
	keyBytes int
	Slot     float64       // iterations per second for the key of a slot
	Digest   float64       // iterations per second for the volume key's digest
	Rest     time.Duration // to decrypt and merge the slot's material
}

// MeasureUnlockSpeed takes about the time d for a container with that cipher,
// hash and key. Errors: a *modes.SpecError, an *hashes.UnknownError, or that of
// ctx.
func MeasureUnlockSpeed(ctx context.Context, cipher, hash string, keyBytes int, d time.Duration) (*UnlockSpeed, error) {
	rest, err := luks1.TrialTime(luks1.Params{Spec: cipher, Hash: hash, KeyBytes: keyBytes})
	if err != nil {
		return nil, err
	}
	slot, err := kdf.Speed(ctx, hash, keyBytes, d*3/4)
	if err != nil {
		return nil, err
	}
	digest, err := kdf.Speed(ctx, hash, luks1.DigestSize, d/4)
	if err != nil {
		return nil, err
	}
	return &UnlockSpeed{hash, keyBytes, slot, digest, rest}, nil
}

// SingleLane measures, for about the time d, how fast tools are that compute
// one block of output after another. Only with SHA-1 do we not.
func (s *UnlockSpeed) SingleLane(ctx context.Context, d time.Duration) (*UnlockSpeed, error) {
	if !strings.EqualFold(s.hash, "sha1") {
		return s, nil
	}
	block, err := kdf.SingleLaneSpeed(ctx, 1, d)
	if err != nil {
		return nil, err
	}
	blocks := func(n int) float64 { return float64((n + sha1.Size - 1) / sha1.Size) }
	return &UnlockSpeed{s.hash, s.keyBytes, block / blocks(s.keyBytes), block / blocks(luks1.DigestSize), s.Rest}, nil
}

// Time returns how long it takes to open a slot.
func (s *UnlockSpeed) Time(iterations, digestIterations int) time.Duration {
	return kdf.Seconds(float64(iterations)/s.Slot + float64(digestIterations)/s.Digest + s.Rest.Seconds())
}

// Iterations returns, for a new slot, how many make the time to open it d, with
// the digest's that go with them. They are from kdf.MinIterations to
// kdf.MaxIterations.
func (s *UnlockSpeed) Iterations(d time.Duration) int {
	n := (d - s.Rest).Seconds() / (1/s.Slot + 1/(digestShare*s.Digest))
	return int(min(max(n, kdf.MinIterations), kdf.MaxIterations))
}
