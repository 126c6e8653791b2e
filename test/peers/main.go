// Peers compares the speed of this program's Serpent with that of others' and,
// for scale, of AES-256-XTS. All do their work in turn, in one thread of one
// process, and show first that they compute the same. It prints tables for
// docs/bench.md.
//
// It is a module of its own, so that the program does not depend on the peers.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"serpcrypt/internal/bench"
)

func main() {
	each := flag.Duration("time", bench.DefaultEach, "how long each figure is measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := report(ctx, os.Stdout, *each); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// report prints nothing unless all could be measured.
func report(ctx context.Context, w io.Writer, each time.Duration) error {
	peers, err := allPeers()
	if err != nil {
		return err
	}
	var tables strings.Builder
	for _, sectorSize := range []int{512, 4096} {
		var results []result
		for _, t := range tasks(sectorSize) {
			more, err := compare(ctx, t, peers, each)
			if err != nil {
				return err
			}
			results = append(results, more...)
		}
		sectors := fmt.Sprintf("Sectors of %d bytes, ", sectorSize)
		writeTable(&tables, sectors+"core cycles per byte", results, cyclesPerByte)
		writeTable(&tables, sectors+"MB/s (10^6 bytes)", results, megabytesPerSecond)
	}
	machine := bench.ThisMachine()
	fmt.Fprintf(w, "%s: %s, %s.\n\n", time.Now().Format("2 January 2006"), machine.CPU, machine.Kernel)
	for _, p := range peers {
		if p.version != "" {
			fmt.Fprintf(w, "- %s\n", p.version)
		}
	}
	fmt.Fprintf(w, "\nRuns of %d KiB, for cbc-enc of %d KiB. serpcrypt gets a run in one call, the others sector by sector.\n",
		runBytes>>10, chainedRunBytes>>10)
	_, err = io.WriteString(w, tables.String())
	return err
}
