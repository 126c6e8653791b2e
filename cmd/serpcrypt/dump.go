package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/hashes"
	"serpcrypt/kdf"
	"serpcrypt/volume"
)

func dumpCommand() *cli.Command {
	return &cli.Command{
		Name:        "dump",
		Usage:       "show what a container's header says",
		UsageText:   "serpcrypt dump [options] CONTAINER",
		Description: "serpcrypt dump --json box.luks",
		Action:      runDump,
	}
}

// runDump takes no lock, so that an open container can be looked at. A header
// with a fault in it is shown all the same, but the fault decides the end.
func runDump(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	path := args[0]
	file, err := volume.PeekFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	h, fault := volume.ReadHeader(file)
	if h == nil {
		return fault
	}
	var estimate *unlockEstimate
	if fault == nil {
		if estimate, err = estimateUnlock(c.Context, h); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		err = printJSON(newHeaderDocument(path, h, estimate))
	} else {
		err = writeHeader(screen.out, path, h, estimate)
	}
	if err != nil {
		return err
	}
	return fault
}

// unlockEstimate is how long the key slots take to open here.
type unlockEstimate struct {
	iterationsPerSecond int // of the key slots' derivation
	slots               map[int]time.Duration
}

// estimateUnlock measures the derivation for a moment and calculates the rest:
// a slot costs its own iterations and those of the volume key's digest. PBKDF2
// costs as much for each block of output that is as long as the hash.
func estimateUnlock(ctx context.Context, h *volume.Header) (*unlockEstimate, error) {
	newHash, err := hashes.New(h.Hash)
	if err != nil {
		return nil, err
	}
	rate, err := kdf.Calibrate(ctx, h.Hash, h.KeyBytes, time.Second)
	if err != nil {
		return nil, err
	}
	blocks := func(n int) float64 { return float64((n + newHash().Size() - 1) / newHash().Size()) }
	digest := float64(h.DigestIterations) * blocks(len(h.Digest)) / blocks(h.KeyBytes)
	estimate := &unlockEstimate{iterationsPerSecond: rate, slots: map[int]time.Duration{}}
	for i, s := range h.Slots {
		if s.State == volume.SlotEnabled {
			seconds := (float64(s.Iterations) + digest) / float64(rate)
			estimate.slots[i] = time.Duration(seconds * float64(time.Second))
		}
	}
	return estimate, nil
}

// writeHeader prints what cryptsetup luksDump prints, and the unlock times.
func writeHeader(w io.Writer, path string, h *volume.Header, estimate *unlockEstimate) error {
	var b strings.Builder
	row := func(name string, value any) { fmt.Fprintf(&b, "%-15s\t%v\n", name+":", value) }
	fmt.Fprintf(&b, "LUKS header information for %s\n\n", path)
	row("Version", h.Version)
	row("Cipher name", printable(h.Cipher))
	row("Cipher mode", printable(h.Mode))
	row("Hash spec", printable(h.Hash))
	row("Payload offset", h.PayloadOffset/sectorSize)
	row("MK bits", h.KeyBytes*8)
	row("MK digest", spacedHex(h.Digest))
	row("MK salt", spacedHex(h.DigestSalt[:saltRow]))
	fmt.Fprintf(&b, "%15s\t%s\n", "", spacedHex(h.DigestSalt[saltRow:]))
	row("MK iterations", h.DigestIterations)
	row("UUID", printable(h.UUID))
	b.WriteString("\n")
	for i, s := range h.Slots {
		fmt.Fprintf(&b, "Key Slot %d: %s\n", i, strings.ToUpper(string(s.State)))
		if s.State != volume.SlotEnabled {
			continue
		}
		fmt.Fprintf(&b, "\t%-20s\t%d\n", "Iterations:", s.Iterations)
		fmt.Fprintf(&b, "\t%-20s\t%s\n", "Salt:", spacedHex(s.Salt[:saltRow]))
		fmt.Fprintf(&b, "\t%22s\t%s\n", "", spacedHex(s.Salt[saltRow:]))
		fmt.Fprintf(&b, "\t%-20s\t%d\n", "Key material offset:", s.MaterialOffset/sectorSize)
		fmt.Fprintf(&b, "\t%-23s\t%d\n", "AF stripes:", s.Stripes)
	}
	if estimate != nil && len(estimate.slots) > 0 {
		fmt.Fprintf(&b, "\nUnlock time here, estimated from a short run of PBKDF2-%s for %d bits (%d iterations per second):\n",
			h.Hash, h.KeyBytes*8, estimate.iterationsPerSecond)
		for i := range h.Slots {
			if d, ok := estimate.slots[i]; ok {
				fmt.Fprintf(&b, "\tKey Slot %d:          \t%.3f s\n", i, d.Seconds())
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
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

// printable keeps what a foreign header says from reaching the terminal as a
// command.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// headerDocument is what --json prints: every field of the header. Places and
// sizes are in bytes, if the name does not say bits.
type headerDocument struct {
	Container        string         `json:"container"`
	Type             string         `json:"type"`
	Version          int            `json:"version"`
	UUID             string         `json:"uuid"`
	Cipher           string         `json:"cipher"`
	Mode             string         `json:"mode"`
	Hash             string         `json:"hash"`
	KeyBits          int            `json:"key_bits"`
	PayloadOffset    int64          `json:"payload_offset"`
	Digest           string         `json:"digest"`
	DigestSalt       string         `json:"digest_salt"`
	DigestIterations int            `json:"digest_iterations"`
	KeySlots         []slotDocument `json:"key_slots"`
}

type slotDocument struct {
	Slot           int      `json:"slot"`
	State          string   `json:"state"`
	Iterations     int      `json:"iterations"`
	Salt           string   `json:"salt"`
	MaterialOffset int64    `json:"material_offset"`
	Stripes        int      `json:"stripes"`
	UnlockSeconds  *float64 `json:"unlock_seconds_estimated,omitempty"`
}

func newHeaderDocument(path string, h *volume.Header, estimate *unlockEstimate) *headerDocument {
	d := &headerDocument{
		Container:        path,
		Type:             h.Type,
		Version:          h.Version,
		UUID:             h.UUID,
		Cipher:           h.Cipher,
		Mode:             h.Mode,
		Hash:             h.Hash,
		KeyBits:          h.KeyBytes * 8,
		PayloadOffset:    h.PayloadOffset,
		Digest:           hex.EncodeToString(h.Digest),
		DigestSalt:       hex.EncodeToString(h.DigestSalt),
		DigestIterations: h.DigestIterations,
	}
	for i, s := range h.Slots {
		slot := slotDocument{
			Slot:           i,
			State:          string(s.State),
			Iterations:     s.Iterations,
			Salt:           hex.EncodeToString(s.Salt),
			MaterialOffset: s.MaterialOffset,
			Stripes:        s.Stripes,
		}
		if estimate != nil {
			if t, ok := estimate.slots[i]; ok {
				seconds := t.Seconds()
				slot.UnlockSeconds = &seconds
			}
		}
		d.KeySlots = append(d.KeySlots, slot)
	}
	return d
}
