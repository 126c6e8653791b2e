package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"serpcrypt/volume"
)

func keyAddCommand() *cli.Command {
	return &cli.Command{
		Name:      "add",
		Usage:     "let another passphrase open the container",
		UsageText: "serpcrypt key add [options] CONTAINER",
		Description: `serpcrypt key add box.luks
   serpcrypt key add --key-file old --new-keyfile new --key-slot 3 box.luks`,
		Flags: newSlotFlags(pbkdfFlags(volume.PBKDF2, "the container's"),
			&cli.IntFlag{Name: "key-slot", Aliases: []string{"S"}, Value: volume.AnySlot, DefaultText: "the first that is free", Usage: "put the new passphrase into key slot `N`"},
			&cli.StringFlag{Name: "volume-key-file", Usage: "take the volume key itself from `FILE`, and no old passphrase"},
		),
		Action: runKeyAdd,
	}
}

func keyChangeCommand() *cli.Command {
	return &cli.Command{
		Name:      "change",
		Usage:     "replace a passphrase by another",
		UsageText: "serpcrypt key change [options] CONTAINER",
		Description: `serpcrypt key change box.luks
   serpcrypt key change --volume-key-file key --key-slot 3 box.luks`,
		Flags: newSlotFlags(pbkdfFlags("that of the key slot", "that of the key slot"),
			&cli.IntFlag{Name: "key-slot", Aliases: []string{"S"}, Value: volume.AnySlot, DefaultText: "the one that opens", Usage: "change key slot `N`"},
			&cli.StringFlag{Name: "volume-key-file", Usage: "take the volume key itself from `FILE`, and no old passphrase: --key-slot says what is changed"},
		),
		Action: runKeyChange,
	}
}

// newSlotFlags are for commands that make a key slot in a container.
func newSlotFlags(pbkdf []cli.Flag, own ...cli.Flag) []cli.Flag {
	flags := append([]cli.Flag{headerFlag()}, own...)
	flags = append(flags, passphraseFlags()...)
	flags = append(flags, newKeyFlags()...)
	return append(flags, pbkdf...)
}

// newKey is a key slot in the making.
type newKey struct {
	file     *container
	header   *volume.Header
	key      *volume.Key
	newBytes *passphrase
	params   volume.KeyParams
	times    unlockTimes
}

func (k *newKey) close() {
	if k.newBytes != nil {
		k.newBytes.Close()
	}
	if k.key != nil {
		k.key.Close()
	}
	k.file.close()
}

// newKeyRequest says what is wanted of a new key slot.
type newKeyRequest struct {
	old      keyRequest
	check    func(*volume.Header) error // before anybody is asked for anything
	isChange bool                       // of the old key's slot
}

// prepareKey opens the container by the old key, gets the new one, and finds out
// what the new slot is to cost.
func prepareKey(c *cli.Context, want newKeyRequest) (*newKey, error) {
	old := want.old
	fresh := keyRequest{container: old.container, isNew: true, flags: newKeyFile}
	fresh.stdinTaken = c.String("key-file") == stdio || c.String("volume-key-file") == stdio
	if err := errors.Join(checkUnlockFlags(c, old), checkKeyFlags(c, fresh)); err != nil {
		return nil, err
	}
	cost, err := parseSlotCost(c)
	if err != nil {
		return nil, err
	}
	if cost.kdf != volume.PBKDF2 && cost.hash != "" {
		return nil, usagef("--hash is for PBKDF2: Argon2 has its own")
	}
	file, err := editContainer(c, old.container)
	if err != nil {
		return nil, err
	}
	k := &newKey{file: file}
	if err := k.prepare(c, want, fresh, cost); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

func (k *newKey) prepare(c *cli.Context, want newKeyRequest, fresh keyRequest, cost slotCost) (err error) {
	ctx, at := c.Context, k.file.headerStores()
	if k.header, err = volume.ReadHeader(at); err != nil {
		return err
	}
	if err := want.check(k.header); err != nil {
		return err
	}
	if k.header.Type == volume.TypeLUKS1 && cost.kdf != volume.PBKDF2 {
		return usagef("--pbkdf %s needs LUKS2: %s is LUKS1, which has only %s", cost.kdf, k.file.path, volume.PBKDF2)
	}
	if k.key, err = unlock(c, at, want.old); err != nil {
		return err
	}
	if want.isChange {
		if c.IsSet("volume-key-file") {
			k.key.Slot = c.Int("key-slot")
		}
		if cost, err = cost.like(c, k.header.Slots[k.key.Slot]); err != nil {
			return err
		}
	}
	if k.newBytes, err = readPassphrase(c, fresh); err != nil {
		return fmt.Errorf("new passphrase: %w", err)
	}
	warnOfSwap()
	if k.params, k.times, err = cost.forSlot(ctx, k.header, k.key.Bytes.Len()); err != nil {
		return err
	}
	warnOf(k.params, k.times)
	return nil
}

// makeSlot writes the key slot, no longer than --timeout allows.
func (k *newKey) makeSlot(c *cli.Context, make func(context.Context) (int, error)) (slot int, err error) {
	err = inTime(c.Context, timeout(c), func(ctx context.Context) error {
		slot, err = make(ctx)
		return err
	})
	return slot, namingFlag(err)
}

func runKeyAdd(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	slot := c.Int("key-slot")
	k, err := prepareKey(c, newKeyRequest{
		old:   keyRequest{container: args[0], anySlot: true},
		check: func(h *volume.Header) error { return checkFree(h, slot) },
	})
	if err != nil {
		return err
	}
	defer k.close()
	slot, err = k.makeSlot(c, func(ctx context.Context) (int, error) {
		return volume.AddKey(ctx, k.file.header, k.key, k.newBytes.Bytes(), slot, k.params)
	})
	if err != nil {
		return err
	}
	return k.show(c, slot, nil)
}

// checkFree reports that slot, or every one, is in use.
func checkFree(h *volume.Header, slot int) error {
	free := false
	for i, s := range h.Slots {
		switch {
		case i == slot && s.State != volume.SlotDisabled:
			return fmt.Errorf("%w: %d", volume.ErrSlotUsed, slot)
		case s.State == volume.SlotDisabled:
			free = true
		}
	}
	if slot >= len(h.Slots) {
		return usagef("--key-slot: %d (there are 0 to %d)", slot, len(h.Slots)-1)
	}
	if !free {
		return volume.ErrNoFreeSlot
	}
	return nil
}

func runKeyChange(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	slot := c.Int("key-slot")
	byVolumeKey := c.IsSet("volume-key-file")
	if byVolumeKey && !c.IsSet("key-slot") {
		return usagef("--volume-key-file needs --key-slot, to say what is changed")
	}
	k, err := prepareKey(c, newKeyRequest{
		old: keyRequest{container: args[0], anySlot: byVolumeKey},
		check: func(h *volume.Header) error {
			if !hasSlot(h, slot) {
				return noSlotError(args[0], slot)
			}
			return nil
		},
		isChange: true,
	})
	if err != nil {
		return err
	}
	defer k.close()
	slot, err = k.makeSlot(c, func(ctx context.Context) (int, error) {
		return volume.ChangeKey(ctx, k.file.header, k.key, k.newBytes.Bytes(), k.params)
	})
	if err != nil {
		return err
	}
	return k.show(c, slot, &k.key.Slot)
}

// newKeyDocument is what --json prints.
type newKeyDocument struct {
	Container  string `json:"container"`
	KeySlot    int    `json:"key_slot"`
	OldKeySlot *int   `json:"old_key_slot,omitempty"` // that was changed
	KDF        string `json:"kdf"`
	Hash       string `json:"hash,omitempty"`
	Iterations int    `json:"iterations,omitempty"`
	argon2Document
	unlockTimes
}

// show tells what has been made, and of what, unless that is nil.
func (k *newKey) show(c *cli.Context, slot int, changed *int) error {
	if k.params.KDF == volume.PBKDF2 && k.params.Hash == "" {
		k.params.Hash = k.header.Hash
	}
	if c.Bool("json") {
		p := k.params
		return printJSON(newKeyDocument{k.file.path, slot, changed, p.KDF, p.Hash, p.Iterations, newArgon2Document(p.Argon2), k.times})
	}
	switch {
	case changed != nil && *changed != slot:
		infof("Key slot %d of %s opens now, in place of key slot %d", slot, k.file.path, *changed)
	case changed != nil:
		infof("Key slot %d of %s opens now with the new passphrase alone", slot, k.file.path)
	default:
		infof("Key slot %d of %s opens now as well", slot, k.file.path)
	}
	infof("  %-13s%s", "Passphrase:", printable(describeKDF(k.params)))
	infof("  %-13s%s", "Unlocking:", k.times)
	return nil
}
