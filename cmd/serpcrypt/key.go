package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"serpcrypt/volume"
	"serpcrypt/volume/luks2"
)

const (
	hintKeyList = "serpcrypt key list shows which key slots are in use"
	hintErased  = "its keys were destroyed; a backup of its header has them: serpcrypt header restore"
)

func keyCommand() *cli.Command {
	return &cli.Command{
		Name:      "key",
		Usage:     "list, add, change, remove or test passphrases",
		UsageText: "serpcrypt key list|add|change|remove|test [options] CONTAINER",
		Subcommands: []*cli.Command{
			keyListCommand(),
			keyAddCommand(),
			keyChangeCommand(),
			keyRemoveCommand(),
			keyTestCommand(),
		},
	}
}

func keyListCommand() *cli.Command {
	return &cli.Command{
		Name:        "list",
		Usage:       "show the key slots",
		UsageText:   "serpcrypt key list [options] CONTAINER",
		Description: "serpcrypt key list box.luks",
		Flags:       []cli.Flag{headerFlag()},
		Action:      runKeyList,
	}
}

func keyTestCommand() *cli.Command {
	return &cli.Command{
		Name:        "test",
		Usage:       "try whether a passphrase opens the container, and which key slot",
		UsageText:   "serpcrypt key test [options] CONTAINER",
		Description: "serpcrypt key test box.luks",
		Flags:       append([]cli.Flag{headerFlag()}, unlockFlags()...),
		Action:      runKeyTest,
	}
}

// keyListDocument is what --json prints.
type keyListDocument struct {
	Container string         `json:"container"`
	Type      string         `json:"type"`
	KeySlots  []slotDocument `json:"key_slots"`
	FreeSlots int            `json:"free_key_slots"` // that there is room for
}

func runKeyList(c *cli.Context) error {
	return showHeader(c, func(path string, h *volume.Header, times map[int]unlockTimes) error {
		if c.Bool("json") {
			return printJSON(keyListDocument{path, h.Type, slotDocuments(h, times), countRoom(h)})
		}
		showKeySlots(h, times)
		return nil
	})
}

// showKeySlots prints a line for each key slot.
func showKeySlots(h *volume.Header, times map[int]unlockTimes) {
	for i, s := range h.Slots {
		switch s.State {
		case volume.SlotDisabled:
			continue
		case volume.SlotInvalid:
			infof("%2d  %-8s  the header says nothing about it that makes sense", i, s.State)
			continue
		}
		line := fmt.Sprintf("%2d  %-8s  %s", i, s.State, describeSlot(s))
		if t, known := times[i]; known {
			line += fmt.Sprintf(": %v", t)
		}
		infof("%s%s", line, describePriority(s.Priority))
	}
	free, room := countSlots(h, volume.SlotDisabled), ""
	if n := countRoom(h); n < free {
		room = fmt.Sprintf(", and there is room for %d more", n)
	}
	infof("%d of %d key slots are free%s", free, len(h.Slots), room)
}

// countRoom returns how many keys can be added: with LUKS2 each takes a place in
// an area that may be too small for as many as have numbers.
func countRoom(h *volume.Header) int {
	free := countSlots(h, volume.SlotDisabled)
	if h.LUKS2 == nil || h.KeyBytes == 0 {
		return free
	}
	return min(free, h.LUKS2.FreeAreas(luks2.AreaSize(h.KeyBytes)))
}

func describeSlot(s volume.Slot) string {
	return printable(describeKDF(volume.KeyParams{KDF: s.KDF, Hash: strings.ToLower(s.Hash), Iterations: s.Iterations, Argon2: s.Argon2}))
}

func describePriority(p volume.SlotPriority) string {
	switch p {
	case volume.PriorityIgnore:
		return " (only used if it is named)"
	case volume.PriorityPrefer:
		return " (tried first)"
	}
	return ""
}

// keyTestDocument is what --json prints.
type keyTestDocument struct {
	Container string `json:"container"`
	KeySlot   *int   `json:"key_slot"` // null: it was the volume key
}

// runKeyTest changes nothing and needs no lock, so it works on an open container
// as well.
func runKeyTest(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	path := args[0]
	request := keyRequest{container: path}
	if err := checkUnlockFlags(c, request); err != nil {
		return err
	}
	file, err := peekContainer(c, path)
	if err != nil {
		return err
	}
	defer file.close()
	key, err := unlock(c, file.headerStores(), request)
	if err != nil {
		return err
	}
	defer key.Close()
	switch {
	case c.Bool("json"):
		return printJSON(keyTestDocument{path, slotOrNil(key.Slot)})
	case key.Slot == volume.AnySlot:
		infof("This is the volume key of %s", path)
	default:
		infof("Key slot %d of %s opens", key.Slot, path)
	}
	return nil
}

// countSlots returns how many key slots are in a state.
func countSlots(h *volume.Header, state volume.SlotState) (n int) {
	for _, s := range h.Slots {
		if s.State == state {
			n++
		}
	}
	return n
}
