package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"serpcrypt/internal/cpucycles"
	"serpcrypt/internal/load"
)

// volumeBytes is the size of each file, and volumeRounds how often the ways take
// turns. A test has less.
var (
	volumeBytes  int64 = 128 << 20
	volumeRounds       = 7
)

// volumeTasks all go through the whole file once, in requests of load.MaxBytes.
// Nothing that is read comes from the page cache of the mount but "again"; what
// is written is synced, and goes in place of what was there but for "new".
var volumeTasks = []struct {
	column string
	order  load.Order
}{
	{"read", load.Order{Depth: 1, Fresh: true}},
	{"write", load.Order{Depth: 1, Write: true, Sync: true}},
	{"write new", load.Order{Depth: 1, Empty: true, Write: true, Sync: true}},
	{"read x8", load.Order{Depth: 8, Fresh: true}},
	{"write x8", load.Order{Depth: 8, Write: true, Sync: true}},
	{"read again", load.Order{Depth: 1, Again: true}},
}

// compareVolumes measures the ways to encrypted files, which take turns.
func compareVolumes(ctx context.Context) (results []result, storage string, err error) {
	m, ways, err := openMounts(ctx, volumeBytes)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, m.closeAll()) }()
	cmd := exec.Command(m.serpcrypt, "bench-load")
	cmd.Stderr = os.Stderr
	p, err := load.Start(cmd)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	for _, w := range ways { // so that no file has holes
		if _, err := p.Do(w.order(load.Order{Depth: 1, Write: true, Sync: true})); err != nil {
			return nil, "", fmt.Errorf("%s: %w", w.name, err)
		}
	}
	for _, t := range volumeTasks {
		times := make([][]float64, len(ways)) // nanoseconds
		for range volumeRounds {
			for i, w := range ways {
				if err := ctx.Err(); err != nil {
					return nil, "", err
				}
				a, err := p.Do(w.order(t.order))
				if err != nil {
					return nil, "", fmt.Errorf("%s: %w", w.name, err)
				}
				times[i] = append(times[i], float64(a.Time/time.Nanosecond))
			}
		}
		for i, w := range ways {
			cost := cpucycles.Cost{Nanoseconds: cpucycles.Median(times[i])}
			results = append(results, result{w.name, t.column, int(volumeBytes), cost})
		}
	}
	return results, m.storage, nil
}

func (w way) order(o load.Order) load.Order {
	o.Path, o.Area, o.Bytes, o.Once, o.Direct = w.file, volumeBytes, load.MaxBytes, true, w.direct
	return o
}

// besideTheirs returns a cell function: the speed of a result by that of
// gocryptfs's faster way to do the same.
func besideTheirs(results []result) func(result) string {
	theirs := map[string]float64{} // nanoseconds by column
	for _, r := range results {
		if isTheirs(r) && (theirs[r.column] == 0 || r.cost.Nanoseconds < theirs[r.column]) {
			theirs[r.column] = r.cost.Nanoseconds
		}
	}
	return func(r result) string { return fmt.Sprintf("%.2fx", theirs[r.column]/r.cost.Nanoseconds) }
}

func isTheirs(r result) bool { return strings.HasPrefix(r.peer, gocryptfsName) }

func writeVolumes(w io.Writer, results []result, storage string) {
	writeTable(w, fmt.Sprintf("Sequential requests of 1 MiB to encrypted files on %s, MB/s (10^6 bytes)", storage), results, megabytesPerSecond)
	var ours []result
	for _, r := range results {
		if !isTheirs(r) {
			ours = append(ours, r)
		}
	}
	writeTable(w, "The same, as multiples of gocryptfs's faster way", ours, besideTheirs(results))
}
