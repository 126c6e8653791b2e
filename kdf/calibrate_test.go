package kdf

import (
	"context"
	"errors"
	"testing"
	"time"

	"serpcrypt/internal/hashes"
)

// machine takes the same time for each iteration.
type machine struct {
	perIteration time.Duration
	counts       []int // of iterations asked for
}

func (m *machine) cost(iterations int) (time.Duration, error) {
	m.counts = append(m.counts, iterations)
	return time.Duration(iterations) * m.perIteration, nil
}

func TestCalibrateArithmetic(t *testing.T) {
	for _, c := range []struct {
		name         string
		perIteration time.Duration
		d            time.Duration
		want         int
	}{
		{"fast", 250, time.Second, 4000000},
		{"fast, short", 250, 20 * time.Millisecond, 80000},
		{"slow", 10 * time.Microsecond, 3 * time.Second, 300000},
		{"never under the least", time.Millisecond, 5 * time.Millisecond, MinIterations},
		{"never over the most", 1, 100 * time.Hour, MaxIterations},
		{"time too short to see", 0, time.Second, MaxIterations},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &machine{perIteration: c.perIteration}
			got, err := calibrate(context.Background(), c.d, m.cost)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			for i, n := range m.counts {
				if n < MinIterations || n > MaxIterations || i > 0 && n < m.counts[i-1] {
					t.Fatalf("iterations tried: %d", m.counts)
				}
			}
		})
	}
}

func TestCalibrateDoublesUntilMeasurable(t *testing.T) {
	m := &machine{perIteration: time.Microsecond}
	if _, err := calibrate(context.Background(), time.Second, m.cost); err != nil {
		t.Fatal(err)
	}
	want := []int{1000, 2000, 4000, 8000, 16000, 32000, 64000}
	if got := len(m.counts); got != len(want)+samples {
		t.Fatalf("iterations tried: %d", m.counts)
	}
	for i, n := range m.counts {
		if n != want[min(i, len(want)-1)] {
			t.Fatalf("iterations tried: %d", m.counts)
		}
	}
}

func TestCalibrateTakesTheMedian(t *testing.T) {
	slow := []time.Duration{40, 90, 41, 39, 40, 300}
	got, err := calibrate(context.Background(), time.Second, func(int) (time.Duration, error) {
		d := slow[0] * time.Millisecond
		slow = slow[1:]
		return d, nil
	})
	if want := 1000 * 1000 / 41; err != nil || got != want {
		t.Errorf("got %d, %v, want %d", got, err, want)
	}
}

func TestCalibrateErrors(t *testing.T) {
	fault := errors.New("fault")
	for failing := range 8 {
		calls := 0
		got, err := calibrate(context.Background(), time.Second, func(n int) (time.Duration, error) {
			if calls++; calls > failing {
				return 0, fault
			}
			return time.Duration(n) * 20 * time.Microsecond, nil
		})
		if wantErr := failing < 2+samples; errors.Is(err, fault) != wantErr || (got == 0) != wantErr {
			t.Errorf("fault after %d calls: got %d, %v", failing, got, err)
		}
	}
	for _, d := range []time.Duration{0, -time.Second} {
		if got, err := Calibrate(context.Background(), "sha1", 64, d); err == nil {
			t.Errorf("%v: got %d", d, got)
		}
	}
	var unknown *hashes.UnknownError
	if _, err := Calibrate(context.Background(), "md5", 64, time.Second); !errors.As(err, &unknown) {
		t.Errorf("md5: error is %v", err)
	}
	if _, err := Calibrate(context.Background(), "sha1", 0, time.Second); err == nil {
		t.Error("a key of no bytes is taken")
	}
}

func TestCalibrateStopsWithContext(t *testing.T) {
	for after := range 8 {
		ctx, cancel := context.WithCancel(context.Background())
		calls := 0
		_, err := calibrate(ctx, time.Second, func(n int) (time.Duration, error) {
			if calls++; calls == after {
				cancel()
			}
			return 0, nil
		})
		if after == 0 {
			cancel()
			_, err = calibrate(ctx, time.Second, (&machine{}).cost)
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled in call %d: error is %v", after, err)
		} else if after > 0 && calls != after {
			t.Errorf("cancelled in call %d: %d calls", after, calls)
		}
	}
}

func TestCalibrateHere(t *testing.T) {
	for _, hash := range []string{"sha1", "sha512"} {
		got, err := Calibrate(context.Background(), hash, 64, 50*time.Millisecond)
		if err != nil || got < MinIterations || got > MaxIterations {
			t.Errorf("%s: got %d, %v", hash, got, err)
		}
		t.Logf("%s: %d iterations in 50 ms", hash, got)
	}
}
