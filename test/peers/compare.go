package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"serpcrypt/internal/cpucycles"
)

// result is what a peer needs for a task.
type result struct {
	peer string
	task task
	cost cpucycles.Cost // of a run
}

// contest is a task with the peers that do it.
type contest struct {
	task    task
	peers   []peer
	works   []work
	src     []byte
	outputs [][]byte // one for each peer
}

func newContest(t task, peers []peer) (*contest, error) {
	c := &contest{task: t, src: make([]byte, t.bytes)}
	rand.Read(c.src)
	for _, p := range peers {
		if !p.does(t) {
			continue
		}
		w, err := p.open(t)
		if err != nil {
			c.close()
			return nil, fmt.Errorf("%s of %s: %w", t.name(), p.name, err)
		}
		c.peers = append(c.peers, p)
		c.works = append(c.works, w)
		c.outputs = append(c.outputs, make([]byte, t.bytes))
	}
	return c, nil
}

func (c *contest) close() {
	for _, w := range c.works {
		w.close()
	}
}

// check lets each peer do the task once. It fails unless those with the same
// cipher compute the same, and something.
func (c *contest) check() error {
	first := map[string]int{}
	for i, p := range c.peers {
		clear(c.outputs[i])
		c.works[i].run(c.outputs[i], c.src)
		if _, ok := first[p.cipher]; !ok {
			first[p.cipher] = i
		}
		reference := first[p.cipher]
		switch {
		case !bytes.Equal(c.outputs[i], c.outputs[reference]):
			return fmt.Errorf("%s, sectors of %d bytes: %s computes other bytes than %s",
				c.task.name(), c.task.sectorSize, p.name, c.peers[reference].name)
		case bytes.Equal(c.outputs[i], make([]byte, c.task.bytes)):
			return fmt.Errorf("%s, sectors of %d bytes: %s computes nothing but zeros",
				c.task.name(), c.task.sectorSize, p.name)
		}
	}
	return nil
}

// measure lets the peers take turns.
func (c *contest) measure(ctx context.Context, each time.Duration) ([]result, error) {
	var functions []func()
	for i, w := range c.works {
		functions = append(functions, func() { w.run(c.outputs[i], c.src) })
	}
	costs, err := cpucycles.Measure(ctx, each, functions...)
	if err != nil {
		return nil, err
	}
	var results []result
	for i, p := range c.peers {
		results = append(results, result{p.name, c.task, costs[i]})
	}
	return results, nil
}

// compare checks and measures how the peers do a task.
func compare(ctx context.Context, t task, peers []peer, each time.Duration) ([]result, error) {
	c, err := newContest(t, peers)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.measure(ctx, each)
}
