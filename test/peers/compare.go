package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"serpcrypt/internal/cpucycles"
)

// result is what a peer needs in a contest.
type result struct {
	peer   string
	column string
	units  int            // bytes or iterations of a run
	cost   cpucycles.Cost // of a run
}

// contest is what several peers do with the same input, a column of a table.
type contest struct {
	column      string
	what        string // for messages
	units       int    // bytes or iterations of a run
	contestants []contestant
}

// contestant is a peer at work.
type contestant struct {
	name   string
	rule   string // those of the same one have the same output
	run    func()
	output []byte // that run overwrites
	close  func() // nil if there is nothing to be closed
}

func (c *contest) close() {
	for _, x := range c.contestants {
		if x.close != nil {
			x.close()
		}
	}
}

// check lets each peer run once. It fails unless those under the same rule
// compute the same, and something.
func (c *contest) check() error {
	first := map[string]contestant{}
	for _, x := range c.contestants {
		clear(x.output)
		x.run()
		if _, ok := first[x.rule]; !ok {
			first[x.rule] = x
		}
		reference := first[x.rule]
		switch {
		case !bytes.Equal(x.output, reference.output):
			return fmt.Errorf("%s: %s computes other bytes than %s", c.what, x.name, reference.name)
		case bytes.Equal(x.output, make([]byte, len(x.output))):
			return fmt.Errorf("%s: %s computes nothing but zeros", c.what, x.name)
		}
	}
	return nil
}

// measure lets the peers take turns.
func (c *contest) measure(ctx context.Context, each time.Duration) ([]result, error) {
	var functions []func()
	for _, x := range c.contestants {
		functions = append(functions, x.run)
	}
	costs, err := cpucycles.Measure(ctx, each, functions...)
	if err != nil {
		return nil, err
	}
	var results []result
	for i, x := range c.contestants {
		results = append(results, result{x.name, c.column, c.units, costs[i]})
	}
	return results, nil
}

// compare checks, measures and closes.
func (c *contest) compare(ctx context.Context, each time.Duration) ([]result, error) {
	defer c.close()
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.measure(ctx, each)
}
