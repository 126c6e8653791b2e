package cpucycles

import (
	"context"
	"errors"
	"testing"
	"time"
)

// fakeCPU is a clock that only the work below moves on.
type fakeCPU struct {
	now       time.Duration
	gigahertz float64
}

func (c *fakeCPU) meter() meter {
	return meter{
		now:      func() time.Duration { return c.now },
		chain:    func() { c.now += time.Duration(chainCycles / c.gigahertz) },
		minBatch: minBatch,
	}
}

func (c *fakeCPU) work(d time.Duration) repeated { return repeat(func() { c.now += d }) }

func TestCostInTimeAndCycles(t *testing.T) {
	cpu := &fakeCPU{gigahertz: 3}
	costs, err := cpu.meter().measure(context.Background(), 10*time.Millisecond,
		[]repeated{cpu.work(20), cpu.work(500), cpu.work(7 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Cost{{20, 60}, {500, 1500}, {7e6, 21e6}} {
		if !Known {
			want.Cycles = 0
		}
		if costs[i] != want {
			t.Errorf("function %d costs %v, want %v", i, costs[i], want)
		}
	}
}

func TestMedianIgnoresInterruptions(t *testing.T) {
	cpu := &fakeCPU{gigahertz: 1}
	batches := 0
	costs, err := cpu.meter().measure(context.Background(), 30*time.Millisecond, []repeated{repeat(func() {
		cpu.now += time.Millisecond
		if batches++; batches%3 == 0 {
			cpu.now += 50 * time.Millisecond
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	if want := 1e6; costs[0].Nanoseconds != want {
		t.Errorf("median is %v ns, want %v", costs[0].Nanoseconds, want)
	}
}

// A chain that is interrupted does not make cycles seem fewer.
func TestDisturbedChains(t *testing.T) {
	cpu := &fakeCPU{gigahertz: 2}
	m := cpu.meter()
	chains := 0
	calm := m.chain
	m.chain = func() {
		if calm(); chains%2 == 0 {
			cpu.now += time.Millisecond
		}
		chains++
	}
	costs, err := m.measure(context.Background(), 10*time.Millisecond, []repeated{cpu.work(time.Millisecond), cpu.work(300)})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{2e6, 600} {
		if costs[i].Cycles != want && Known {
			t.Errorf("function %d takes %v cycles, want %v", i, costs[i].Cycles, want)
		}
	}
}

func TestFunctionsTakeTurns(t *testing.T) {
	cpu := &fakeCPU{gigahertz: 1}
	var order []int
	call := func(i int) repeated {
		return repeat(func() {
			cpu.now += time.Second
			order = append(order, i)
		})
	}
	if _, err := cpu.meter().measure(context.Background(), 5*time.Second, []repeated{call(0), call(1)}); err != nil {
		t.Fatal(err)
	}
	// Two calls find the size of a batch. The chains take time as well, so that
	// the fifth round begins just before the end.
	if want := 2 + 2*5; len(order) != want {
		t.Fatalf("%d calls, want %d", len(order), want)
	}
	for i, which := range order {
		if which != i%2 {
			t.Fatalf("order of calls: %v", order)
		}
	}
}

func TestAtLeastThreeRounds(t *testing.T) {
	cpu := &fakeCPU{gigahertz: 1}
	calls := 0
	if _, err := cpu.meter().measure(context.Background(), 1, []repeated{repeat(func() { calls++; cpu.now += time.Hour })}); err != nil {
		t.Fatal(err)
	}
	if want := 1 + minRounds; calls != want {
		t.Errorf("%d calls, want %d", calls, want)
	}
}

func TestMeasureStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	_, err := Measure(ctx, time.Hour, func() {
		if calls++; calls == 10 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestMeasureOnThisCPU(t *testing.T) {
	costs, err := Measure(context.Background(), 3*time.Millisecond, func() { multiplyChain(10) }, func() { multiplyChain(1000) })
	if err != nil {
		t.Fatal(err)
	}
	if len(costs) != 2 {
		t.Fatalf("%d costs", len(costs))
	}
	for i, c := range costs {
		if c.Nanoseconds <= 0 || (c.Cycles > 0) != Known {
			t.Errorf("function %d: %v, Known is %v", i, c, Known)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1}, 5}, {[]float64{100, 1, 3}, 3}, {[]float64{4, 1, 100, 2}, 3}} {
		if got := Median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

// The clock is that by which the chain takes its time.
func TestClock(t *testing.T) {
	got := Clock()
	if (got > 0) != Known || got > 100 {
		t.Errorf("%v cycles in a nanosecond, Known is %v", got, Known)
	}
}
