package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"serpcrypt/kdf"
	"serpcrypt/volume"
)

func dumpCommand() *cli.Command {
	return &cli.Command{
		Name:        "dump",
		Usage:       "show what a container's header says",
		UsageText:   "serpcrypt dump [options] CONTAINER",
		Description: "serpcrypt dump --json box.luks",
		Flags:       []cli.Flag{headerFlag()},
		Action:      runDump,
	}
}

func runDump(c *cli.Context) error {
	return showHeader(c, func(path string, h *volume.Header, times map[int]unlockTimes) error {
		if !c.Bool("json") {
			return writeHeader(screen.out, path, h, times)
		}
		d, err := newHeaderDocument(path, h, times)
		if err != nil {
			return err
		}
		return printJSON(d)
	})
}

// showHeader has show print the header of the CONTAINER, with the times to unlock
// it. It takes no lock, so that an open container can be looked at. A header with a
// fault in it is shown all the same, but the fault decides the end.
func showHeader(c *cli.Context, show func(path string, h *volume.Header, times map[int]unlockTimes) error) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	path := args[0]
	file, err := peekContainer(c, path)
	if err != nil {
		return err
	}
	defer file.close()
	h, fault := readToShow(file.headerStores())
	if h == nil {
		return fmt.Errorf("%s: %w", cmp.Or(c.String("header"), path), fault)
	}
	var times map[int]unlockTimes
	if fault == nil && countSlots(h, volume.SlotEnabled) > 0 {
		if times, err = estimateUnlock(c.Context, h); err != nil {
			return err
		}
	}
	warnOfHeader(path, h)
	if err := show(path, h, times); err != nil {
		return err
	}
	return fault
}

// estimateUnlock returns the times of the key slots in use, by their number.
func estimateUnlock(ctx context.Context, h *volume.Header) (map[int]unlockTimes, error) {
	const measured = 150 * time.Millisecond // for each hash
	speeds := map[string]unlockSpeeds{}
	times := map[int]unlockTimes{}
	for i, s := range h.Slots {
		if s.State != volume.SlotEnabled {
			continue
		}
		var err error
		if times[i], err = estimateSlot(ctx, h, s, func(hash string) (unlockSpeeds, error) {
			if _, known := speeds[hash]; !known {
				speed, err := measureSpeeds(ctx, h.Cipher+"-"+h.Mode, hash, h.KeyBytes, measured)
				if err != nil {
					return unlockSpeeds{}, err
				}
				speeds[hash] = speed
			}
			return speeds[hash], nil
		}); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// estimateSlot adds up the derivation and the digest, which may have different
// hashes.
func estimateSlot(ctx context.Context, h *volume.Header, s volume.Slot, speedOf func(hash string) (unlockSpeeds, error)) (unlockTimes, error) {
	digest, err := speedOf(h.Hash)
	if err != nil {
		return unlockTimes{}, err
	}
	if s.KDF != volume.PBKDF2 {
		slot, err := estimateArgon2(ctx, kdf.Argon2{Variant: s.KDF, Time: s.Argon2.Time, Memory: s.Argon2.MemoryKiB, CPUs: s.Argon2.Lanes})
		return slot.plus(digest.times(0, h.DigestIterations)), err
	}
	if strings.EqualFold(s.Hash, h.Hash) {
		return digest.times(s.Iterations, h.DigestIterations), nil
	}
	slot, err := speedOf(s.Hash)
	if err != nil {
		return unlockTimes{}, err
	}
	return slot.times(s.Iterations, 0).plus(digest.times(0, h.DigestIterations)), nil
}

// writeHeader prints what cryptsetup luksDump prints, and the unlock times.
func writeHeader(w io.Writer, path string, h *volume.Header, times map[int]unlockTimes) error {
	var b strings.Builder
	if h.LUKS2 != nil {
		dumpLUKS2(&b, h.LUKS2)
	} else {
		dumpLUKS1(&b, path, h)
	}
	if len(times) > 0 {
		b.WriteString("\nUnlock time, estimated from a short run:\n")
		for i := range h.Slots {
			if t, ok := times[i]; ok {
				fmt.Fprintf(&b, "\tKey Slot %d:          \t%v\n", i, t)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// dumpLUKS1 writes what cryptsetup luksDump prints.
func dumpLUKS1(b *strings.Builder, path string, h *volume.Header) {
	row := func(name string, value any) { fmt.Fprintf(b, "%-15s\t%v\n", name+":", value) }
	fmt.Fprintf(b, "LUKS header information for %s\n\n", path)
	row("Version", h.Version)
	row("Cipher name", printable(h.Cipher))
	row("Cipher mode", printable(h.Mode))
	row("Hash spec", printable(h.Hash))
	row("Payload offset", h.PayloadOffset/sectorSize)
	row("MK bits", h.KeyBytes*8)
	row("MK digest", spacedHex(h.Digest))
	row("MK salt", spacedHex(h.DigestSalt[:saltRow]))
	fmt.Fprintf(b, "%15s\t%s\n", "", spacedHex(h.DigestSalt[saltRow:]))
	row("MK iterations", h.DigestIterations)
	row("UUID", printable(h.UUID))
	b.WriteString("\n")
	for i, s := range h.Slots {
		fmt.Fprintf(b, "Key Slot %d: %s\n", i, strings.ToUpper(string(s.State)))
		if s.State != volume.SlotEnabled {
			continue
		}
		fmt.Fprintf(b, "\t%-20s\t%d\n", "Iterations:", s.Iterations)
		fmt.Fprintf(b, "\t%-20s\t%s\n", "Salt:", spacedHex(s.Salt[:saltRow]))
		fmt.Fprintf(b, "\t%22s\t%s\n", "", spacedHex(s.Salt[saltRow:]))
		fmt.Fprintf(b, "\t%-20s\t%d\n", "Key material offset:", s.MaterialOffset/sectorSize)
		fmt.Fprintf(b, "\t%-23s\t%d\n", "AF stripes:", s.Stripes)
	}
}

const saltRow = 16 // bytes of a salt in a line

// spacedHex writes each byte with a space behind it.
func spacedHex(b []byte) string {
	var text strings.Builder
	for _, c := range b {
		fmt.Fprintf(&text, "%02x ", c)
	}
	return text.String()
}
