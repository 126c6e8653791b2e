package main

import (
	"crypto/rand"
	"slices"
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

// task is what all peers do to the same run of sectors. The IV or tweak of each
// sector, but for ECB, is its number as in "plain64".
type task struct {
	mode       string // "ecb", "cbc", "ctr" or "xts"
	encrypt    bool
	sectorSize int
	bytes      int    // of the run
	key        []byte // 32 bytes, for XTS 64
}

// tasks returns those for one size of sector, a column of the table each.
func tasks(sectorSize int) []task {
	tasks := []task{
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
func (t task) name() string {
	switch {
	case t.mode == "ctr":
		return "ctr"
	case t.encrypt:
		return t.mode + "-enc"
	}
	return t.mode + "-dec"
}

// peer is an implementation of a block cipher's modes.
type peer struct {
	name    string
	version string // of what it is made of, with its name; empty for this program
	cipher  string // peers with the same one compute the same
	modes   []string
	open    func(t task) (work, error) // for a task of these modes
}

func (p peer) does(t task) bool { return slices.Contains(p.modes, t.mode) }

// work is a task with all that it needs.
type work struct {
	run   func(dst, src []byte)
	close func()
}

var allModes = []string{"ecb", "cbc", "ctr", "xts"}

// allPeers begins with this program's kernels, the portable one first.
func allPeers() ([]peer, error) {
	gcrypt, err := libgcrypt()
	if err != nil {
		return nil, err
	}
	return append(ourKernels(), gcrypt, aeadSerpent(), openssl(), goAES()), nil
}
