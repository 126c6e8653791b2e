package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"serpcrypt/volume"
)

func keyRemoveCommand() *cli.Command {
	return &cli.Command{
		Name:      "remove",
		Usage:     "destroy the key slot of a passphrase, or the one that is named",
		UsageText: "serpcrypt key remove [options] CONTAINER",
		Description: `serpcrypt key remove box.luks
   serpcrypt key remove --key-slot 3 box.luks`,
		Flags: append([]cli.Flag{
			headerFlag(),
			&cli.IntFlag{Name: "key-slot", Aliases: []string{"S"}, Value: volume.AnySlot, DefaultText: "the one that opens", Usage: "remove key slot `N`; the passphrase is that of one that stays"},
			&cli.StringFlag{Name: "volume-key-file", Usage: "take the volume key itself from `FILE`, and no passphrase of a key slot that stays"},
		}, passphraseFlags()...),
		Action: runKeyRemove,
	}
}

func runKeyRemove(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	path := args[0]
	request := keyRequest{container: path, anySlot: true}
	if err := checkUnlockFlags(c, request); err != nil {
		return err
	}
	named := c.IsSet("key-slot")
	if !named && c.IsSet("volume-key-file") {
		return usagef("--volume-key-file needs --key-slot, to say what is removed")
	}
	file, err := editContainer(c, path)
	if err != nil {
		return err
	}
	defer file.close()
	slot := c.Int("key-slot")
	if named {
		err = checkRemaining(c, file, request, slot)
	} else {
		slot, err = slotToRemove(c, file, request)
	}
	if err != nil {
		return err
	}
	err = volume.RemoveKey(c.Context, file.header, slot, false)
	if errors.Is(err, volume.ErrLastKey) {
		loss := fmt.Sprintf("key slot %d is the last one of %s: without it nobody will ever open the container again", slot, path)
		if err := confirm(c.Context, loss); err != nil {
			return err
		}
		err = volume.RemoveKey(c.Context, file.header, slot, true)
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(keyTestDocument{path, &slot})
	}
	infof("Key slot %d of %s is destroyed", slot, path)
	return nil
}

// slotToRemove finds the key slot that a passphrase opens.
func slotToRemove(c *cli.Context, file *container, r keyRequest) (int, error) {
	key, err := unlock(c, file.headerStores(), r)
	if err != nil {
		return volume.AnySlot, err
	}
	key.Close()
	return key.Slot, nil
}

// checkRemaining makes the person show that the container can be opened without
// the key slot: by a passphrase or the volume key. It does not if there is no
// other slot in use, which is another question, nor with -q, unless there is a
// key file.
func checkRemaining(c *cli.Context, file *container, r keyRequest, slot int) error {
	header, err := volume.ReadHeader(file.headerStores())
	if err != nil {
		return err
	}
	if slot >= len(header.Slots) || header.Slots[slot].State == volume.SlotDisabled {
		return noSlotError(file.path, slot)
	}
	hasKeyFile := c.IsSet("key-file") || c.IsSet("volume-key-file")
	header.Slots[slot].State = volume.SlotDisabled
	if countSlots(header, volume.SlotEnabled) == 0 || screen.quiet && !hasKeyFile {
		return nil
	}
	key, err := unlock(c, file.headerStores(), r)
	if err != nil {
		return err
	}
	key.Close()
	if key.Slot == slot {
		return failf(exitPermission, "give one that opens another key slot, or leave --key-slot out", "this is the passphrase of key slot %d, which is to be removed", slot)
	}
	return nil
}
