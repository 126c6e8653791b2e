package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"
)

// firstSector is the number of the first sector of a run, in units of 512
// bytes, which are what all peers count.
const (
	firstSector = 1 << 33
	sectorUnit  = 512
)

// Bytes that are handled in one go. Where each sector is a chain, many are
// needed to be fast.
const (
	runBytes        = 64 << 10
	chainedRunBytes = 1 << 20
)

// sectorTask is what all peers do to the same run of sectors. The IV or tweak of each
// sector, but for ECB, is its number as in "plain64".
type sectorTask struct {
	mode       string // "ecb", "cbc", "ctr" or "xts"
	encrypt    bool
	sectorSize int
	bytes      int    // of the run
	key        []byte // 32 bytes, for XTS 64
}

// sectorTasks returns those for one size of sector, a column of the table each.
func sectorTasks(sectorSize int) []sectorTask {
	tasks := []sectorTask{
		{mode: "ecb", encrypt: true},
		{mode: "ecb"},
		{mode: "cbc", encrypt: true},
		{mode: "cbc"},
		{mode: "ctr", encrypt: true},
		{mode: "xts", encrypt: true},
		{mode: "xts"},
	}
	for i := range tasks {
		t := &tasks[i]
		t.sectorSize = sectorSize
		t.bytes, t.key = runBytes, make([]byte, 32)
		if t.mode == "cbc" && t.encrypt {
			t.bytes = chainedRunBytes
		}
		if t.mode == "xts" {
			t.key = make([]byte, 64)
		}
		rand.Read(t.key)
	}
	return tasks
}

// name is the head of a column; counter mode is the same both ways.
func (t sectorTask) name() string {
	switch {
	case t.mode == "ctr":
		return "ctr"
	case t.encrypt:
		return t.mode + "-enc"
	}
	return t.mode + "-dec"
}

// sectorPeer is an implementation of a block cipher's modes.
type sectorPeer struct {
	name   string
	cipher string // peers with the same one compute the same
	modes  []string
	open   func(t sectorTask) (work, error) // for a task of these modes
}

func (p sectorPeer) does(t sectorTask) bool { return slices.Contains(p.modes, t.mode) }

// work is a task with all that it needs.
type work struct {
	run   func(dst, src []byte)
	close func()
}

var allModes = []string{"ecb", "cbc", "ctr", "xts"}

// sectorPeers begins with this program's kernels, the portable one first.
func sectorPeers() []sectorPeer {
	return append(ourKernels(), libgcrypt(), aeadSerpent(), openssl(), goAES())
}

// sectorContest lets those of the peers who can do the task.
func sectorContest(t sectorTask, peers []sectorPeer) (*contest, error) {
	c := &contest{
		column: t.name(),
		what:   fmt.Sprintf("%s, sectors of %d bytes", t.name(), t.sectorSize),
		units:  t.bytes,
	}
	src := make([]byte, t.bytes)
	rand.Read(src)
	for _, p := range peers {
		if !p.does(t) {
			continue
		}
		w, err := p.open(t)
		if err != nil {
			c.close()
			return nil, fmt.Errorf("%s of %s: %w", t.name(), p.name, err)
		}
		output := make([]byte, t.bytes)
		c.contestants = append(c.contestants, contestant{
			name: p.name, rule: p.cipher, run: func() { w.run(output, src) }, output: output, close: w.close,
		})
	}
	return c, nil
}

func compareSectors(ctx context.Context, sectorSize int, each time.Duration) ([]result, error) {
	var results []result
	for _, t := range sectorTasks(sectorSize) {
		c, err := sectorContest(t, sectorPeers())
		if err != nil {
			return nil, err
		}
		more, err := c.compare(ctx, each)
		if err != nil {
			return nil, err
		}
		results = append(results, more...)
	}
	return results, nil
}
