package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/hashes"
	"serpcrypt/kdf"
	"serpcrypt/volume"
)

const (
	defaultIterTime = 1000          // milliseconds
	maxIterTime     = math.MaxInt32 // milliseconds, nearly 25 days
	fewIterations   = 100000        // what a graphics card tries thousands of times a second

	slowTime    = time.Minute            // after which nobody thinks that it works
	calibration = 500 * time.Millisecond // to find out how many iterations are wanted
	estimation  = 30 * time.Millisecond  // to say how long they take
)

// pbkdfFlags choose how a key is derived from a new passphrase. function and hash
// say what is taken by default.
func pbkdfFlags(function, hash string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "pbkdf", Value: volume.PBKDF2, DefaultText: function, Usage: "derive keys from passphrases by `NAME`: pbkdf2, argon2id, argon2i"},
		&cli.IntFlag{Name: "iter-time", Aliases: []string{"i"}, Value: defaultIterTime, Usage: "spend `MILLISECONDS` on a passphrase when unlocking here"},
		&cli.IntFlag{Name: "pbkdf-force-iterations", DefaultText: "as --iter-time says", Usage: "make it `N` iterations instead, or passes of Argon2"},
		&cli.IntFlag{Name: "pbkdf-memory", DefaultText: "as --iter-time says", Usage: "let Argon2 take so many `KIB` of memory"},
		&cli.IntFlag{Name: "pbkdf-parallel", DefaultText: "one for each processor, up to 4", Usage: "let Argon2 compute `N` lanes at once"},
		&cli.StringFlag{Name: "hash", DefaultText: hash, Usage: "`HASH` of PBKDF2: " + strings.Join(hashes.Names(), ", ")},
	}
}

// slotCost is what a new key slot is to cost whoever opens it.
type slotCost struct {
	kdf        string
	hash       string        // of PBKDF2; "": the container's
	iterTime   time.Duration // 0: iterations say it
	iterations int
	memoryKiB  int // of Argon2; 0: what the time allows
	lanes      int // of Argon2; 0: by default
}

// parseSlotCost finds everything that is wrong with pbkdfFlags.
func parseSlotCost(c *cli.Context) (slotCost, error) {
	s := slotCost{
		kdf:        strings.ToLower(c.String("pbkdf")),
		hash:       strings.ToLower(c.String("hash")),
		iterations: c.Int("pbkdf-force-iterations"),
		memoryKiB:  c.Int("pbkdf-memory"),
		lanes:      c.Int("pbkdf-parallel"),
	}
	least := kdf.MinIterations
	switch s.kdf {
	case volume.PBKDF2:
		if c.IsSet("pbkdf-memory") || c.IsSet("pbkdf-parallel") {
			return s, usagef("--pbkdf-memory and --pbkdf-parallel are for Argon2: --pbkdf argon2id")
		}
	case volume.Argon2i, volume.Argon2id:
		least = kdf.MinArgon2Time
	default:
		return s, usagef("--pbkdf: unknown function %q (known: %s, %s, %s)", c.String("pbkdf"), volume.PBKDF2, volume.Argon2id, volume.Argon2i)
	}
	if s.hash != "" {
		if _, err := hashes.New(s.hash); err != nil {
			return s, usagef("--hash: %w", err)
		}
	}
	switch {
	case c.IsSet("pbkdf-force-iterations") && c.IsSet("iter-time"):
		return s, usagef("--iter-time and --pbkdf-force-iterations exclude each other")
	case c.IsSet("pbkdf-force-iterations") && s.iterations < least:
		return s, usagef("--pbkdf-force-iterations must be at least %d", least)
	case c.IsSet("pbkdf-force-iterations"):
	case c.Int("iter-time") < 1:
		return s, usagef("--iter-time must be at least 1")
	case c.Int("iter-time") > maxIterTime:
		return s, usagef("--iter-time must be at most %d", maxIterTime)
	default:
		s.iterTime = time.Duration(c.Int("iter-time")) * time.Millisecond
	}
	if c.IsSet("pbkdf-memory") && s.memoryKiB < kdf.MinArgon2Memory {
		return s, usagef("--pbkdf-memory must be at least %d", kdf.MinArgon2Memory)
	}
	if c.IsSet("pbkdf-parallel") && s.lanes < 1 {
		return s, usagef("--pbkdf-parallel must be at least 1")
	}
	return s, s.checkArgon2()
}

// like takes what no flag says from the key slot that is to be replaced, so that a
// new passphrase is not easier to guess than the old one was.
func (s slotCost) like(c *cli.Context, slot volume.Slot) (slotCost, error) {
	isPBKDF2 := slot.KDF == volume.PBKDF2
	switch {
	case !isPBKDF2 && !c.IsSet("pbkdf") && (s.hash != "" || s.iterations > 0):
		return s, usagef("the key slot has %s: --pbkdf must say what --hash and --pbkdf-force-iterations are for", slot.KDF)
	case !isPBKDF2 && !c.IsSet("pbkdf"):
		s.kdf = slot.KDF
	case isPBKDF2 && s.kdf == volume.PBKDF2 && s.hash == "":
		s.hash = strings.ToLower(slot.Hash)
	}
	return s, nil
}

// checkArgon2 tries the costs that are given with harmless ones for the others.
func (s slotCost) checkArgon2() error {
	if s.kdf == volume.PBKDF2 {
		return nil
	}
	lanes := max(s.lanes, 1)
	a := kdf.Argon2{Variant: s.kdf, Time: max(s.iterations, kdf.MinArgon2Time), Memory: s.memoryKiB, CPUs: lanes}
	if a.Memory == 0 {
		a.Memory = kdf.MaxArgon2Memory
	}
	var wrong *kdf.Argon2Error
	if err := a.CheckNew(); errors.As(err, &wrong) {
		flags := map[string]string{"time": "--pbkdf-force-iterations", "memory in KiB": "--pbkdf-memory", "cpus": "--pbkdf-parallel"}
		return usagef("%s: %s", flags[wrong.Param], wrong.Reason)
	}
	return nil
}

// forSlot finds the parameters of a key slot that is to be added to a container,
// whose volume key has keyBytes, and how long it will take to open.
func (s slotCost) forSlot(ctx context.Context, h *volume.Header, keyBytes int) (p volume.KeyParams, times unlockTimes, err error) {
	p = volume.KeyParams{KDF: s.kdf, Hash: s.hash, Iterations: s.iterations}
	if s.kdf != volume.PBKDF2 {
		p.Iterations = 0
		p.Argon2, times, err = s.forArgon2(ctx)
		return p, times, err
	}
	speeds, err := s.measureSpeeds(ctx, h.Cipher+"-"+h.Mode, cmp.Or(s.hash, h.Hash), keyBytes)
	if err != nil {
		return p, unlockTimes{}, err
	}
	if s.iterTime > 0 {
		rest := s.iterTime - speeds.here.Time(0, h.DigestIterations)
		n := rest.Seconds() * speeds.here.Slot
		p.Iterations = int(min(max(n, kdf.MinIterations), kdf.MaxIterations))
	}
	return p, speeds.times(p.Iterations, h.DigestIterations), nil
}

// forContainer finds the parameters of the key slot that a container is made
// with, and how long it will take to open.
func (s slotCost) forContainer(ctx context.Context, p *volume.Params) (times unlockTimes, err error) {
	p.KDF, p.Iterations = s.kdf, s.iterations
	if s.kdf != volume.PBKDF2 {
		p.Iterations = 0
		p.Argon2, times, err = s.forArgon2(ctx)
		return times, err
	}
	speeds, err := s.measureSpeeds(ctx, p.Cipher, p.Hash, p.KeyBits/8)
	if err != nil {
		return unlockTimes{}, err
	}
	if s.iterTime > 0 {
		p.Iterations = speeds.here.Iterations(s.iterTime)
	}
	return speeds.times(p.Iterations, volume.DigestIterations(p.Iterations)), nil
}

// measureSpeeds takes longer where the iterations depend on it.
func (s slotCost) measureSpeeds(ctx context.Context, cipher, hash string, keyBytes int) (unlockSpeeds, error) {
	if s.iterTime > 0 {
		return measureSpeeds(ctx, cipher, hash, keyBytes, calibration)
	}
	return measureSpeeds(ctx, cipher, hash, keyBytes, estimation)
}

// forArgon2 finds the costs of a key slot with Argon2, and how long it will take to
// open.
func (s slotCost) forArgon2(ctx context.Context) (volume.Argon2Cost, unlockTimes, error) {
	a, err := s.argon2(ctx)
	if err != nil {
		return volume.Argon2Cost{}, unlockTimes{}, err
	}
	times, err := estimateArgon2(ctx, a)
	return volume.Argon2Cost{Time: a.Time, MemoryKiB: a.Memory, Lanes: a.CPUs}, times, err
}

// cheapest sets costs that any container can have, for as long as those that are
// wanted are not known.
func (s slotCost) cheapest(p volume.Params) volume.Params {
	p.KDF = s.kdf
	p.Iterations = max(s.iterations, kdf.MinIterations)
	if s.kdf != volume.PBKDF2 {
		p.Argon2 = volume.Argon2Cost{Time: kdf.MinArgon2Time, MemoryKiB: kdf.MinArgon2Memory, Lanes: 1}
	}
	return p
}

// argon2 finds the costs that are not given.
func (s slotCost) argon2(ctx context.Context) (kdf.Argon2, error) {
	a := kdf.Argon2{Variant: s.kdf, Time: s.iterations, Memory: s.memoryKiB, CPUs: s.lanes}
	if a.CPUs == 0 {
		a.CPUs = kdf.DefaultArgon2CPUs()
	}
	if a.Memory == 0 {
		wanted := s.iterTime
		if wanted == 0 {
			wanted = defaultIterTime * time.Millisecond
		}
		calibrated, err := kdf.CalibrateArgon2(ctx, s.kdf, a.CPUs, wanted)
		if err != nil || a.Time == 0 {
			return calibrated, err
		}
		a.Memory = calibrated.Memory
	}
	if a.Time > 0 {
		return a, nil
	}
	a.Time = kdf.MinArgon2Time
	for range 2 { // many passes take less time each
		about, err := a.Estimate(ctx)
		if err != nil {
			return a, err
		}
		passes := float64(a.Time) * float64(s.iterTime) / float64(max(about, 1))
		a.Time = int(min(max(passes, kdf.MinArgon2Time), kdf.MaxArgon2Time))
	}
	return a, nil
}

// warnOf says what is unwise about a key slot, or takes long.
func warnOf(p volume.KeyParams, times unlockTimes) {
	if p.KDF == volume.PBKDF2 && p.Iterations < fewIterations {
		warnf("%d iterations are few: a passphrase that can be guessed will be", p.Iterations)
	}
	if about := seconds(times.Here); about > slowTime {
		notef("the key slot takes about %s to make, and to open here", formatAbout(about))
	}
}

// describeKDF names the function and its costs, for people.
func describeKDF(p volume.KeyParams) string {
	if p.KDF == volume.PBKDF2 {
		return fmt.Sprintf("PBKDF2-%s, %d iterations", p.Hash, p.Iterations)
	}
	name := strings.Replace(p.KDF, "argon2", "Argon2", 1)
	return fmt.Sprintf("%s, %d passes over %s, lanes: %d", name, p.Argon2.Time, formatSize(int64(p.Argon2.MemoryKiB)<<10), p.Argon2.Lanes)
}
