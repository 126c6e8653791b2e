package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"serpcrypt/volume"
)

// unlockFlags choose how a container is unlocked.
func unlockFlags() []cli.Flag {
	return append(passphraseFlags(),
		&cli.IntFlag{Name: "key-slot", Aliases: []string{"S"}, Value: volume.AnySlot, DefaultText: "any", Usage: "try only key slot `N`"},
		&cli.StringFlag{Name: "volume-key-file", Usage: "take the volume key itself from `FILE`, and no passphrase"},
	)
}

// unlock gets the volume key of a container by what the flags and the person
// give. The caller closes it.
func unlock(ctx context.Context, c *cli.Context, s volume.Store, r keyRequest) (*volume.Key, error) {
	if c.IsSet("volume-key-file") {
		return readVolumeKey(ctx, c, s, r)
	}
	var key *volume.Key
	err := tryPassphrases(ctx, c, s, r, func(passphrase []byte) (err error) {
		key, err = volume.Unlock(ctx, s, passphrase, c.Int("key-slot"))
		return err
	})
	return key, err
}

// tryPassphrases calls open, which unlocks s, with the passphrase that the
// person gives: with another one each time as long as it is wrong and the
// person sits at a terminal.
func tryPassphrases(ctx context.Context, c *cli.Context, s volume.Store, r keyRequest, open func(passphrase []byte) error) error {
	slot := c.Int("key-slot")
	if c.IsSet("key-slot") && slot < 0 {
		return usagef("--key-slot must not be negative")
	}
	// A container that no passphrase opens needs none to be asked for.
	header, err := volume.ReadHeader(s)
	if err != nil {
		return err
	}
	if !hasSlot(header, slot) {
		return volume.ErrNoKeySlot
	}
	for try := 1; ; try++ {
		p, err := readPassphrase(ctx, c, r)
		if err != nil {
			return err
		}
		err = open(p.Bytes())
		if errors.Is(err, volume.ErrPassphrase) && p.keyFile && fitsWithoutNewline(ctx, s, p.Bytes(), slot) {
			err = withHint(err, hintNewline)
		}
		p.Close()
		if !errors.Is(err, volume.ErrPassphrase) || !p.typed || try >= c.Int("tries") {
			return err
		}
		errorf("%s", errorText(err))
	}
}

// hasSlot reports whether slot, or any one, may open.
func hasSlot(h *volume.Header, slot int) bool {
	for i, s := range h.Slots {
		if s.State == volume.SlotEnabled && (slot == volume.AnySlot || slot == i) {
			return true
		}
	}
	return false
}

// fitsWithoutNewline reports whether a key that opens nothing would do so
// without the newline at its end.
func fitsWithoutNewline(ctx context.Context, s volume.Store, key []byte, slot int) bool {
	if len(key) == 0 || key[len(key)-1] != '\n' {
		return false
	}
	opened, err := volume.Unlock(ctx, s, key[:len(key)-1], slot)
	if err != nil {
		return false
	}
	opened.Close()
	return true
}

// readVolumeKey reads the volume key from a file, which may hold more.
func readVolumeKey(ctx context.Context, c *cli.Context, s volume.Store, r keyRequest) (*volume.Key, error) {
	path := c.String("volume-key-file")
	switch {
	case c.IsSet("key-file"), c.IsSet("key-slot"):
		return nil, usagef("--volume-key-file needs neither --key-file nor --key-slot")
	case path == "":
		return nil, usagef("--volume-key-file is empty")
	case path == stdio && r.stdinTaken:
		return nil, errStdinTaken
	}
	header, err := volume.ReadHeader(s)
	if err != nil {
		return nil, err
	}
	b, err := readKeyFile(ctx, path, 0, int64(header.KeyBytes))
	if err != nil {
		return nil, err
	}
	return &volume.Key{Bytes: b, Slot: volume.AnySlot}, nil
}
