package cpucycles

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestCrewSharesWork(t *testing.T) {
	for threads := 1; threads <= 4; threads++ {
		done := make([]int, threads)
		var functions []func()
		for i := range done {
			functions = append(functions, func() { done[i]++ })
		}
		c := newCrew(functions)
		c.work(3)
		c.work(4)
		c.dismiss()
		for i, n := range done {
			if n != 7 {
				t.Errorf("thread %d of %d was called %d times, want 7", i, threads, n)
			}
		}
	}
}

// Each of the functions waits for the other.
func TestCrewWorksAtTheSameTime(t *testing.T) {
	ping, pong := make(chan int), make(chan int)
	c := newCrew([]func(){
		func() { ping <- 1; <-pong },
		func() { <-ping; pong <- 1 },
	})
	c.work(10)
	c.dismiss()
}

// Sleeping counts, and a call is over with the last of its functions.
func TestMeasureParallelIsElapsedTime(t *testing.T) {
	const pause = 5 * time.Millisecond
	costs, err := MeasureParallel(context.Background(), 1,
		[]func(){func() { time.Sleep(pause) }},
		[]func(){func() {}, func() { time.Sleep(2 * pause) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(costs) != 2 {
		t.Fatalf("%d costs", len(costs))
	}
	for i, least := range []time.Duration{pause, 2 * pause} {
		if c := costs[i]; c.Nanoseconds < float64(least) || (c.Cycles > 0) != Known {
			t.Errorf("work %d, which sleeps %v: %+v, Known is %v", i, least, c, Known)
		}
	}
}

func TestMeasureParallelStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	_, err := MeasureParallel(ctx, time.Hour, []func(){
		func() {},
		func() {
			if calls++; calls == 10 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
