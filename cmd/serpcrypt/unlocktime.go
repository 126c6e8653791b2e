package main

import (
	"context"
	"fmt"
	"time"

	"serpcrypt/kdf"
	"serpcrypt/volume"
)

// unlockSpeeds are those of this machine with our code, and with tools that
// leave most of a processor idle: a container's owner may have to use those.
type unlockSpeeds struct{ here, singleLane *volume.UnlockSpeed }

// measureSpeeds takes about the time d.
func measureSpeeds(ctx context.Context, cipher, hash string, keyBytes int, d time.Duration) (speeds unlockSpeeds, err error) {
	speeds.here, err = volume.MeasureUnlockSpeed(ctx, cipher, hash, keyBytes, d*9/10)
	if err != nil {
		return unlockSpeeds{}, err
	}
	speeds.singleLane, err = speeds.here.SingleLane(ctx, d/10)
	return speeds, err
}

// unlockTimes is how long a key slot takes to open, in seconds.
type unlockTimes struct {
	Here       float64 `json:"unlock_seconds_estimated"`
	SingleLane float64 `json:"unlock_seconds_single_lane"`
}

func (s unlockSpeeds) times(iterations, digestIterations int) unlockTimes {
	return unlockTimes{
		Here:       s.here.Time(iterations, digestIterations).Seconds(),
		SingleLane: s.singleLane.Time(iterations, digestIterations).Seconds(),
	}
}

// estimateArgon2 takes other tools to be no slower: Argon2 itself says how many
// processors it can use.
func estimateArgon2(ctx context.Context, a kdf.Argon2) (unlockTimes, error) {
	d, err := a.Estimate(ctx)
	return unlockTimes{d.Seconds(), d.Seconds()}, err
}

func (t unlockTimes) plus(more unlockTimes) unlockTimes {
	return unlockTimes{t.Here + more.Here, t.SingleLane + more.SingleLane}
}

func (t unlockTimes) String() string {
	text := fmt.Sprintf("about %s here", formatAbout(seconds(t.Here)))
	if formatAbout(seconds(t.SingleLane)) != formatAbout(seconds(t.Here)) {
		text += fmt.Sprintf(", about %s with a single-lane tool", formatAbout(seconds(t.SingleLane)))
	}
	return text
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
