package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/secret"
	"serpcrypt/volume"
)

func createCommand() *cli.Command {
	return &cli.Command{
		Name:        "create",
		Usage:       "make a container file, or a container on a block device",
		UsageText:   "serpcrypt create [--size SIZE] [options] CONTAINER",
		Description: "serpcrypt create --size 64M --fs ext4 box.luks",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "size", Usage: "`SIZE` of a new file: 64M, 1G, 1GiB, 1GB or bytes"},
			&cli.StringFlag{Name: "fs", Usage: "make a file system: `NAME` is ext4, xfs ... as in mkfs.NAME"},
			&cli.StringFlag{Name: "type", Value: "luks2", Usage: "`FORMAT` of the container: luks2, or luks1 for qemu and old tools"},
			&cli.StringFlag{Name: "cipher", Aliases: []string{"c"}, Value: volume.DefaultCipher, Usage: "`CIPHER` with mode and IV"},
			&cli.IntFlag{Name: "key-size", Aliases: []string{"s"}, DefaultText: "the most that the cipher takes: 512 for xts", Usage: "`BITS` of the volume key"},
			&cli.IntFlag{Name: "sector-size", DefaultText: "4096 if the payload is whole sectors of it, else 512", Usage: "encrypt in sectors of `BYTES`"},
			&cli.StringFlag{Name: "label", Usage: "`TEXT` by which the container is found (LUKS2); the file system gets it, too"},
			&cli.StringFlag{Name: "subsystem", Usage: "`TEXT` that says what the container is for (LUKS2)"},
			&cli.IntFlag{Name: "key-slot", Aliases: []string{"S"}, Usage: "put the passphrase into key slot `N`"},
			&cli.StringFlag{Name: "uuid", DefaultText: "random", Usage: "`UUID` of the container"},
			&cli.StringFlag{Name: "volume-key-file", Usage: "take the volume key from `FILE` instead of making one"},
			&cli.StringFlag{Name: "header", Usage: "put the header into `FILE`, away from the payload"},
			&cli.Int64Flag{Name: "offset", DefaultText: "the first MiB behind the header", Usage: "begin the payload at sector `N`, of 512 bytes"},
			&cli.BoolFlag{Name: "sparse", Usage: "skip the fill: the file takes space only for what is written, and shows where"},
			&cli.BoolFlag{Name: "force", Usage: "overwrite what is there"},
		}, append(passphraseFlags(), pbkdfFlags(volume.PBKDF2, volume.DefaultHash)...)...),
		Action: runCreate,
	}
}

func runCreate(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	if err := checkKeyFlags(c, keyRequest{}); err != nil {
		return err
	}
	want, err := parseCreation(c, args[0])
	if err != nil {
		return err
	}
	if want.mkfs != "" {
		if err := checkFuse(); err != nil {
			return err
		}
	}
	ctx := c.Context
	places, err := want.findPlaces(ctx)
	if err != nil {
		return err
	}
	defer places.close()

	if c.IsSet("volume-key-file") {
		key, err := readKeyFile(ctx, c.String("volume-key-file"), 0, int64(want.params.KeyBits/8))
		if err != nil {
			return err
		}
		defer key.Close()
		want.params.VolumeKey = key.Bytes()
	}
	passphrase, err := readPassphrase(c, keyRequest{container: want.path, isNew: true})
	if err != nil {
		return err
	}
	defer passphrase.Close()
	warnOfSwap()
	made, err := makeContainer(ctx, want, places, passphrase.Buffer)
	if err != nil {
		return err
	}
	return made.show(c.Bool("json"))
}

// makeContainer does the work. Until it is done nothing at the place looks
// like a container.
func makeContainer(ctx context.Context, want *creation, places *places, passphrase *secret.Buffer) (*creationReport, error) {
	params := want.params
	times, err := want.cost.forContainer(ctx, &params)
	if err != nil {
		return nil, err
	}
	warnOf(keyParams(params), times)
	debugf("write the key slots")
	var formatted *volume.Formatted
	err = inTime(ctx, want.timeout, func(ctx context.Context) (err error) {
		formatted, err = volume.Format(ctx, places.stores(), passphrase.Bytes(), params)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer formatted.Close()
	v, err := formatted.Open(volume.Options{Kernel: want.kernel})
	if err != nil {
		return nil, err
	}
	payload := v.Size()
	err = want.prepareVolume(ctx, v)
	if err = errors.Join(err, v.Close()); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	debugf("write the header")
	if err := formatted.Commit(); err != nil {
		return nil, err
	}
	if err := places.publish(); err != nil {
		return nil, err
	}
	return newCreationReport(want, params, formatted.Header(), payload, times), nil
}

// keyParams are those of the key slot that a container is made with.
func keyParams(p volume.Params) volume.KeyParams {
	return volume.KeyParams{KDF: p.KDF, Hash: p.Hash, Iterations: p.Iterations, Argon2: p.Argon2}
}

// prepareVolume fills the volume and makes the file system.
func (want *creation) prepareVolume(ctx context.Context, v *volume.Volume) error {
	if !want.sparse {
		debugf("fill the payload")
		p := newProgress("filling")
		err := v.Fill(ctx, p.update)
		p.finish()
		if err != nil {
			return err
		}
	}
	if want.mkfs != "" {
		return makeFileSystem(ctx, want.mkfs, want.params.Label, v)
	}
	return nil
}
