package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"serpcrypt/cipher/modes"
	"serpcrypt/volume"
)

// unlockFlags choose how a container is unlocked.
func unlockFlags() []cli.Flag {
	return append(passphraseFlags(),
		&cli.IntFlag{Name: "key-slot", Aliases: []string{"S"}, Value: volume.AnySlot, DefaultText: "any", Usage: "try only key slot `N`"},
		&cli.StringFlag{Name: "volume-key-file", Usage: "take the volume key itself from `FILE`, and no passphrase"},
	)
}

// checkUnlockFlags finds what is wrong with the flags before anything is done.
func checkUnlockFlags(c *cli.Context, r keyRequest) error {
	if err := checkKeyFlags(c, r); err != nil {
		return err
	}
	if c.IsSet("key-slot") && c.Int("key-slot") < 0 {
		return usagef("--key-slot must not be negative")
	}
	if !c.IsSet("volume-key-file") {
		return nil
	}
	switch path := c.String("volume-key-file"); {
	case c.IsSet("key-file"), c.IsSet("key-slot") && !r.anySlot:
		return usagef("--volume-key-file needs neither --key-file nor --key-slot")
	case path == "":
		return usagef("--volume-key-file is empty")
	case path == stdio && r.stdinTaken:
		return errStdinTaken
	}
	return nil
}

// unlock gets the volume key of a container by what the flags and the person
// give: another passphrase each time as long as it is wrong and the person sits
// at a terminal. checkUnlockFlags has found nothing wrong. The caller closes the
// key.
func unlock(c *cli.Context, at volume.Stores, r keyRequest) (*volume.Key, error) {
	defer warnOfSwap()
	if c.IsSet("volume-key-file") {
		return readVolumeKey(c, at)
	}
	slot := volume.AnySlot
	if !r.anySlot {
		slot = c.Int("key-slot")
	}
	// A container that no passphrase opens needs none to be asked for.
	header, err := volume.ReadHeader(at)
	if err != nil {
		return nil, err
	}
	warnOfHeader(r.container, header)
	if !hasSlot(header, slot) {
		return nil, noSlotError(r.container, slot)
	}
	for try := 1; ; try++ {
		p, err := readPassphrase(c, r)
		if err != nil {
			return nil, err
		}
		var key *volume.Key
		err = inTime(c.Context, timeout(c), func(ctx context.Context) (err error) {
			key, err = volume.Unlock(ctx, at, p.Bytes(), slot, noteSlowSlot)
			if errors.Is(err, volume.ErrPassphrase) && p.keyFile && fitsWithoutNewline(ctx, at, p.Bytes(), slot) {
				err = withHint(err, hintNewline)
			}
			if errors.Is(err, volume.ErrPassphrase) && !p.keyFile && !p.isASCII() {
				err = withHint(err, hintOtherBytes)
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return err
		})
		p.Close()
		if !errors.Is(err, volume.ErrPassphrase) || !p.typed || try >= c.Int("tries") {
			return key, err
		}
		errorf("%s", errorText(err))
	}
}

// noteSlowSlot says what the person waits for.
func noteSlowSlot(slot int, about time.Duration) {
	notef("key slot %d takes about %s to open here", slot, formatAbout(about))
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

// noSlotError says that a key slot, or every one, is not in use.
func noSlotError(container string, slot int) error {
	if slot == volume.AnySlot {
		return withHint(fmt.Errorf("%w: %s has none", volume.ErrNoKeySlot, container), hintErased)
	}
	return fmt.Errorf("%w: %d", volume.ErrNoKeySlot, slot)
}

// fitsWithoutNewline reports whether a key that opens nothing would do so
// without the newline at its end.
func fitsWithoutNewline(ctx context.Context, at volume.Stores, key []byte, slot int) bool {
	if len(key) == 0 || key[len(key)-1] != '\n' {
		return false
	}
	opened, err := volume.Unlock(ctx, at, key[:len(key)-1], slot, nil)
	if err != nil {
		return false
	}
	opened.Close()
	return true
}

// readVolumeKey reads the volume key from a file, which may hold more.
func readVolumeKey(c *cli.Context, at volume.Stores) (key *volume.Key, err error) {
	header, err := volume.ReadHeader(at)
	if err != nil {
		return nil, err
	}
	sizes := []int{header.KeyBytes}
	if header.KeyBytes == 0 {
		spec, err := modes.ParseSpec(header.Cipher + "-" + header.Mode)
		if err != nil {
			return nil, err
		}
		sizes = spec.KeySizes()
	}
	b, err := readKeyFile(c.Context, c.String("volume-key-file"), 0, int64(header.KeyBytes))
	if err != nil {
		return nil, err
	}
	defer b.Close()
	err = inTime(c.Context, timeout(c), func(ctx context.Context) error {
		err := volume.ErrVolumeKey
		for _, size := range sizes {
			if errors.Is(err, volume.ErrVolumeKey) && size <= b.Len() {
				key, err = volume.CheckKey(ctx, at, b.Bytes()[:size])
			}
		}
		return err
	})
	return key, err
}
