package volume

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"serpcrypt/internal/hashes"
	"serpcrypt/kdf"
)

func TestUnlockSpeedArithmetic(t *testing.T) {
	for _, c := range []struct {
		name       string
		speed      UnlockSpeed
		iterations int
		time       time.Duration
	}{
		{"as fast for both", UnlockSpeed{Slot: 1e6, Digest: 1e6}, 800000, 900 * time.Millisecond},
		{"faster for the digest", UnlockSpeed{Slot: 1e6, Digest: 4e6}, 3200000, 3300 * time.Millisecond},
		{"slower", UnlockSpeed{Slot: 1e6, Digest: 1e5}, 80000, 180 * time.Millisecond},
		{"with a rest", UnlockSpeed{Slot: 1e6, Digest: 1e6, Rest: 20 * time.Millisecond}, 80000, 110 * time.Millisecond},
	} {
		if got := c.speed.Time(c.iterations, c.iterations/8); got.Round(time.Microsecond) != c.time {
			t.Errorf("%s: %d iterations take %v, want %v", c.name, c.iterations, got, c.time)
		}
		if got := c.speed.Iterations(c.time); got < c.iterations-1 || got > c.iterations+1 {
			t.Errorf("%s: %d iterations in %v, want %d", c.name, got, c.time, c.iterations)
		}
	}
	one := UnlockSpeed{Slot: 1e3, Digest: 1e3, Rest: time.Second}
	if got := one.Iterations(time.Millisecond); got != kdf.MinIterations {
		t.Errorf("in a millisecond: %d iterations", got)
	}
	if got := one.Iterations(math.MaxInt64); got != kdf.MaxIterations {
		t.Errorf("in 292 years: %d iterations", got)
	}
	if got := (&UnlockSpeed{Slot: 1e-9, Digest: 1e-9}).Time(kdf.MaxIterations, kdf.MaxIterations); got <= 0 {
		t.Errorf("the longest time is %v", got)
	}
}

func TestMeasureUnlockSpeed(t *testing.T) {
	for _, hash := range []string{"sha1", "sha256", "sha512"} {
		speed, err := MeasureUnlockSpeed(background, DefaultCipher, hash, 64, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		single, err := speed.SingleLane(background, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if speed.Slot < 1 || speed.Digest < 1 || speed.Rest <= 0 {
			t.Errorf("%s: %+v", hash, speed)
		}
		if hash == "sha1" && single.Slot*4 != single.Digest || hash != "sha1" && *single != *speed || single.Digest < 1 {
			t.Errorf("%s: %+v, single lane %+v", hash, speed, single)
		}
	}
	var unknown *hashes.UnknownError
	if _, err := MeasureUnlockSpeed(background, DefaultCipher, "md5", 64, time.Second); !errors.As(err, &unknown) {
		t.Errorf("md5: %v", err)
	}
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := MeasureUnlockSpeed(ctx, DefaultCipher, "sha1", 64, time.Hour); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := (&UnlockSpeed{hash: "SHA1"}).SingleLane(ctx, time.Hour); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}
