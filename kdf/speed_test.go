package kdf

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"serpcrypt/internal/hashes"
)

// machine has a clock that only its work moves on.
type machine struct {
	now          time.Duration
	perIteration time.Duration
	counts       []int // of iterations asked for
	delays       []time.Duration
}

func (m *machine) clock() time.Duration { return m.now }

func (m *machine) run(iterations int) {
	m.now += time.Duration(iterations) * m.perIteration
	if len(m.counts) < len(m.delays) {
		m.now += m.delays[len(m.counts)]
	}
	m.counts = append(m.counts, iterations)
}

func (m *machine) speed(t *testing.T, d time.Duration) float64 {
	t.Helper()
	speed, err := speed(background, d, m.clock, m.run)
	if err != nil {
		t.Fatal(err)
	}
	return speed
}

func TestSpeedOfFakeMachine(t *testing.T) {
	for _, c := range []struct {
		name         string
		perIteration time.Duration
		d            time.Duration
		want         float64
		counts       []int
	}{
		{"fast", 10 * time.Microsecond, 10 * time.Millisecond, 1e5, []int{64, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128}},
		{"slow", time.Second, 5 * time.Millisecond, 1, []int{64, 64, 64, 64, 64, 64}},
		{"two periods", time.Millisecond, 2 * time.Millisecond, 1000, []int{64, 64, 64}},
		{"once is enough", time.Millisecond, 0, 1000, []int{64, 64}},
	} {
		m := &machine{perIteration: c.perIteration}
		if got := m.speed(t, c.d); math.Round(got) != c.want || !slices.Equal(m.counts, c.counts) {
			t.Errorf("%s: got %v, want %v; iterations asked for: %v, want %v", c.name, got, c.want, m.counts, c.counts)
		}
	}
}

// TestSpeedIsThatOfTheMiddlePeriod: within a period, a delay does count.
func TestSpeedIsThatOfTheMiddlePeriod(t *testing.T) {
	const s = time.Second
	m := &machine{perIteration: s, delays: []time.Duration{0, 9 * s, 16 * s, 16 * s, 20 * s, 0, 0, 8 * s, 9 * s, 10 * s, 30 * s}}
	if got, want := m.speed(t, 5*100*s), 128.0/(128+25); math.Abs(got-want) > 1e-9 || len(m.counts) != 11 {
		t.Errorf("got %v after %d runs, want %v", got, len(m.counts), want)
	}
}

func TestSpeedStopsWithContext(t *testing.T) {
	for after := range 8 {
		ctx, cancel := context.WithCancel(background)
		m := &machine{perIteration: 10 * time.Microsecond}
		_, err := speed(ctx, time.Hour, m.clock, func(iterations int) {
			m.run(iterations)
			if len(m.counts) == after+1 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || len(m.counts) != after+1 {
			t.Errorf("cancelled in run %d: %d runs, error %v", after+1, len(m.counts), err)
		}
	}
}

func TestSpeedHere(t *testing.T) {
	for _, hash := range []string{"sha1", "SHA1", "sha512"} {
		speed, err := Speed(background, hash, 64, time.Millisecond)
		if err != nil || speed < 1 {
			t.Errorf("%s: %v iterations per second, %v", hash, speed, err)
		}
		t.Logf("%s: %.0f iterations per second", hash, speed)
	}
	speed, err := SingleLaneSpeed(background, 64, time.Millisecond)
	if err != nil || speed < 1 {
		t.Errorf("in a single lane: %v iterations per second, %v", speed, err)
	}
	t.Logf("in a single lane: %.0f iterations per second", speed)
	var unknown *hashes.UnknownError
	if _, err := Speed(background, "md5", 64, time.Second); !errors.As(err, &unknown) {
		t.Errorf("md5: error is %v", err)
	}
}

func TestSeconds(t *testing.T) {
	for n, want := range map[float64]time.Duration{
		0: 0, 1.5: 1500 * time.Millisecond, 86400: 24 * time.Hour, 1e30: 876000 * time.Hour, math.Inf(1): 876000 * time.Hour,
	} {
		if got := Seconds(n); got != want {
			t.Errorf("%v: got %v, want %v", n, got, want)
		}
	}
}
