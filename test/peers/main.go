// Peers compares the speed of this program's Serpent, SHA-1 and PBKDF2-HMAC-SHA1
// with that of others' and, for scale, of AES-256-XTS. All do their work in turn,
// in one thread of one process, and show first that they compute the same. It also
// compares open containers with mounts of gocryptfs. It prints tables for
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
	"syscall"
	"time"

	"serpcrypt/internal/bench"
)

func main() {
	each := flag.Duration("time", bench.DefaultEach, "how long each figure is measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := report(ctx, os.Stdout, *each); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// report prints nothing unless all could be measured.
func report(ctx context.Context, w io.Writer, each time.Duration) error {
	var tables strings.Builder
	for _, sectorSize := range []int{512, 4096} {
		results, err := compareSectors(ctx, sectorSize, each)
		if err != nil {
			return err
		}
		sectors := fmt.Sprintf("Sectors of %d bytes, ", sectorSize)
		writeTable(&tables, sectors+"core cycles per byte", results, cyclesPerUnit)
		writeTable(&tables, sectors+"MB/s (10^6 bytes)", results, megabytesPerSecond)
	}
	results, err := compareSHA1(ctx, each)
	if err != nil {
		return err
	}
	writeTable(&tables, "SHA-1 by length of the message, core cycles per byte", results, cyclesPerUnit)
	if results, err = comparePBKDF2(ctx, each); err != nil {
		return err
	}
	writeTable(&tables, "PBKDF2-HMAC-SHA1 by length of the key, million iterations per second", results, millionsPerSecond)

	all := versions()
	if missing := mountsMissing(); missing != nil {
		all = append(all, fmt.Sprintf("mounts not measured: %v", missing))
	} else {
		version, err := gocryptfsVersion(ctx)
		if err != nil {
			return err
		}
		all = append(all, version)
		results, storage, err := compareVolumes(ctx)
		if err != nil {
			return err
		}
		writeVolumes(&tables, results, storage)
	}

	machine := bench.ThisMachine()
	fmt.Fprintf(w, "%s: %s, %s.\n\n", time.Now().Format("2 January 2006"), machine.CPU, machine.Kernel)
	for _, version := range all {
		fmt.Fprintf(w, "- %s\n", version)
	}
	fmt.Fprintf(w, `
Runs of %d KiB, for cbc-enc of %d KiB. serpcrypt gets a run in one call, the others sector by sector.
SHA-1's calls can overlap, but where each waits for the last: its digest chooses their message.
8x64B are the keys of eight key slots, and the iterations those of each.
What is written to encrypted files is synced in the end, as part of the time; it goes in place of what was there or,
if new, to a file just emptied. What is read does not come from the page cache of the mount, but again does. The
requests of x8 are made by eight threads.
`, runBytes>>10, chainedRunBytes>>10)
	_, err = io.WriteString(w, tables.String())
	return err
}
