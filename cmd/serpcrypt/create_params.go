package main

import (
	"cmp"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/hashes"
	"serpcrypt/volume"
)

// creation is what is to be made.
type creation struct {
	path     string
	header   string // path of a detached header, or ""
	size     int64  // bytes, as wanted, or unsaid
	params   volume.Params
	cost     slotCost      // of the key slot
	timeout  time.Duration // for the derivation; 0: none
	fs, mkfs string        // file system and the program that makes it, or ""
	sparse   bool
	force    bool
	kernel   serpent.Kernel
}

// parseCreation finds everything that is wrong with the flags.
func parseCreation(c *cli.Context, path string) (*creation, error) {
	want := &creation{
		path:    path,
		header:  c.String("header"),
		size:    unsaid,
		sparse:  c.Bool("sparse"),
		force:   c.Bool("force"),
		timeout: timeout(c),
		params: volume.Params{
			Cipher:     c.String("cipher"),
			KeyBits:    c.Int("key-size"),
			SectorSize: c.Int("sector-size"),
			Hash:       volume.DefaultHash,
			UUID:       c.String("uuid"),
			Label:      c.String("label"),
			Subsystem:  c.String("subsystem"),
			Slot:       c.Int("key-slot"),
			Detached:   c.IsSet("header"),
		},
	}
	var err error
	if want.kernel, err = chosenKernel(c); err != nil {
		return nil, err
	}
	if want.params.Type, err = parseType(c); err != nil {
		return nil, err
	}
	if c.IsSet("sector-size") && want.params.SectorSize <= 0 {
		return nil, usagef("--sector-size must be more than nothing")
	}
	if want.cost, err = parseSlotCost(c); err != nil {
		return nil, err
	}
	if want.cost.hash != "" {
		want.params.Hash = want.cost.hash
	}
	if c.IsSet("size") {
		if want.size, err = parseSize(c.String("size")); err != nil {
			return nil, usagef("--size: %w", err)
		}
	}
	if c.IsSet("header") && want.header == "" {
		return nil, usagef("--header is empty")
	}
	if c.IsSet("offset") {
		sectors := c.Int64("offset")
		if sectors < 0 || sectors > math.MaxInt64/sectorSize {
			return nil, usagef("--offset: %d is no sector of a disk", sectors)
		}
		want.params.PayloadOffset = sectors * sectorSize
	}
	if c.IsSet("fs") {
		want.fs = c.String("fs")
		if want.mkfs, err = findMkfs(want.fs); err != nil {
			return nil, err
		}
	}
	spec, err := modes.ParseSpec(want.params.Cipher)
	if err != nil {
		return nil, usagef("--cipher: %w", err)
	}
	if spec.Cipher != "serpent" {
		return nil, usagef("--cipher: containers are made with serpent; those with %s can only be used", spec.Cipher)
	}
	if !c.IsSet("key-size") {
		sizes := spec.KeySizes()
		want.params.KeyBits = 8 * sizes[len(sizes)-1]
	} else if want.params.KeyBits <= 0 {
		return nil, usagef("--key-size must be more than nothing")
	}
	if err := want.checkSize(want.size); err != nil {
		return nil, err
	}
	if want.size != unsaid {
		want.size = want.size / sizeUnit * sizeUnit
	}
	return want, nil
}

// parseType reads the format that --type says.
func parseType(c *cli.Context) (string, error) {
	switch name := strings.ToUpper(c.String("type")); name {
	case volume.TypeLUKS1, volume.TypeLUKS2:
		return name, nil
	}
	return "", usagef("--type: unknown format %q (known: luks1, luks2)", c.String("type"))
}

// sizeUnit is what sizes are rounded down to: a page, which is whole sectors
// on every disk.
const sizeUnit = 4096 // bytes

// unsaid is the size that is not given.
const unsaid = -1

// checkSize reports parameters that make no sense, and a size in bytes, unless
// it is unsaid, that is too small for them.
func (want *creation) checkSize(size int64) error {
	least, err := volume.MinSize(want.cost.cheapest(want.params))
	if err != nil {
		return asFlagError(err)
	}
	if size != unsaid && size < least {
		return usagef("%s are too few: a container with these options takes at least %d bytes", formatSize(size), (least+sizeUnit-1)/sizeUnit*sizeUnit)
	}
	return nil
}

// headerSpace returns how many bytes a file for a detached header has.
func (want *creation) headerSpace() (int64, error) {
	space, err := volume.HeaderSize(want.cost.cheapest(want.params))
	if err != nil {
		return 0, asFlagError(err)
	}
	return (space + sizeUnit - 1) / sizeUnit * sizeUnit, nil
}

// checkHeaderSize reports a place that is too small for a detached header.
func (want *creation) checkHeaderSize(size int64) error {
	space, err := want.headerSpace()
	if err == nil && size < space {
		err = usagef("%s at %s are too few for the header, which takes %d bytes", formatSize(size), want.header, space)
	}
	return err
}

// paramFlags has the flags by what volume calls the parameters.
var paramFlags = map[string]string{
	"type":           "--type",
	"sector size":    "--sector-size",
	"UUID":           "--uuid",
	"key size":       "--key-size",
	"key slot":       "--key-slot",
	"iterations":     "--pbkdf-force-iterations",
	"payload offset": "--offset",
	"data offset":    "--offset",
	"hash":           "--hash",
	"key derivation": "--pbkdf",
	"label":          "--label",
	"subsystem":      "--subsystem",
}

// asFlagError names the flag that an error about parameters is about.
func asFlagError(err error) error {
	var param *volume.ParamError
	var spec *modes.SpecError
	var hash *hashes.UnknownError
	switch {
	case errors.As(err, &param):
		return usagef("%s: %s", cmp.Or(paramFlags[param.Param], param.Param), param.Reason)
	case errors.As(err, &spec):
		return usagef("--cipher: %w", err)
	case errors.As(err, &hash):
		return usagef("--hash: %w", err)
	}
	return usagef("%w", err)
}

// namingFlag is asFlagError for errors that may be about something else.
func namingFlag(err error) error {
	var param *volume.ParamError
	if errors.As(err, &param) {
		return asFlagError(err)
	}
	return err
}
