package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"serpcrypt/volume"
)

func eraseCommand() *cli.Command {
	return &cli.Command{
		Name:        "erase",
		Usage:       "destroy every key slot, and with them the container's content",
		UsageText:   "serpcrypt erase [options] CONTAINER",
		Description: "serpcrypt erase box.luks",
		Flags:       []cli.Flag{headerFlag()},
		Action:      runErase,
	}
}

// eraseDocument is what --json prints.
type eraseDocument struct {
	Container string `json:"container"`
	KeySlots  int    `json:"key_slots"` // how many were in use
}

// runErase works on an open container as well, which stays open: whoever is in a
// hurry should not have to close it first.
func runErase(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	path := args[0]
	file, err := editContainer(c, path)
	if err != nil {
		return err
	}
	defer file.close()
	header, err := volume.ReadHeader(file.headerStores())
	if header == nil {
		return err
	}
	slots := len(header.Slots) - countSlots(header, volume.SlotDisabled)
	loss := fmt.Sprintf("all %d key slots in use of %s will be destroyed: nobody will ever open it again, unless there is a backup of its header", slots, path)
	if err := confirm(c.Context, loss); err != nil {
		return err
	}
	if err := volume.Erase(c.Context, file.header); err != nil {
		return withEraseHint(err, header)
	}
	if open := whereOpen(path); open != "" {
		warnf("%s stays open at %s until it is closed", path, open)
	}
	if c.Bool("json") {
		return printJSON(eraseDocument{path, slots})
	}
	infof("Every key slot of %s is destroyed", path)
	return nil
}

// withEraseHint says what to do about key material that may lie anywhere.
func withEraseHint(err error, h *volume.Header) error {
	var fault *volume.FormatError
	if h.Type == volume.TypeLUKS1 && errors.As(err, &fault) && fault.Slot != volume.AnySlot {
		return withHint(err, "nothing has been destroyed: serpcrypt repair knows where key slots lie, and mends that")
	}
	return err
}
