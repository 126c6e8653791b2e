package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/hashes"
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

// creationReport is what has been made, and the document of --json. Sizes and
// places are in bytes.
type creationReport struct {
	Container  string `json:"container"`
	HeaderFile string `json:"header,omitempty"` // if it is detached
	Type       string `json:"type"`
	UUID       string `json:"uuid"`
	Cipher     string `json:"cipher"`
	KeyBits    int    `json:"key_bits"`
	SectorSize int    `json:"sector_size"`
	Label      string `json:"label,omitempty"`
	Subsystem  string `json:"subsystem,omitempty"`
	Hash       string `json:"hash"`
	KDF        string `json:"kdf"`
	Iterations int    `json:"iterations,omitempty"`
	argon2Document
	DigestIterations int `json:"digest_iterations"`
	KeySlot          int `json:"key_slot"`
	unlockTimes
	PayloadOffset int64  `json:"payload_offset"`
	PayloadBytes  int64  `json:"payload_bytes"`
	FileSystem    string `json:"file_system,omitempty"`
	Filled        bool   `json:"filled"`

	passphrase string // how the key is derived from it, for people
}

func newCreationReport(want *creation, p volume.Params, h *volume.Header, payload int64, times unlockTimes) *creationReport {
	return &creationReport{
		Container:        want.path,
		HeaderFile:       want.header,
		Type:             h.Type,
		UUID:             h.UUID,
		Cipher:           h.Cipher + "-" + h.Mode,
		KeyBits:          h.KeyBytes * 8,
		SectorSize:       h.SectorSize,
		Label:            h.Label,
		Subsystem:        h.Subsystem,
		Hash:             h.Hash,
		KDF:              p.KDF,
		Iterations:       p.Iterations,
		argon2Document:   newArgon2Document(p.Argon2),
		DigestIterations: h.DigestIterations,
		KeySlot:          p.Slot,
		unlockTimes:      times,
		PayloadOffset:    h.PayloadOffset,
		PayloadBytes:     payload,
		FileSystem:       want.fs,
		Filled:           !want.sparse,
		passphrase:       describeKDF(keyParams(p)),
	}
}

func (r *creationReport) show(asJSON bool) error {
	if asJSON {
		return printJSON(r)
	}
	infof("Made %s", r.Container)
	if r.HeaderFile != "" {
		infof("Made %s, its header", r.HeaderFile)
	}
	row := func(name, format string, a ...any) { infof("  %-13s%s", name+":", fmt.Sprintf(format, a...)) }
	row("Format", "%s, UUID %s", r.Type, r.UUID)
	row("Cipher", "%s, %d-bit key, sectors of %d bytes", r.Cipher, r.KeyBits, r.SectorSize)
	row("Passphrase", "%s, key slot %d", r.passphrase, r.KeySlot)
	row("Unlocking", "%s", r.unlockTimes)
	row("Payload", "%s", formatExactly(r.PayloadBytes))
	if r.FileSystem != "" {
		row("File system", "%s", r.FileSystem)
	}
	if !screen.quiet {
		hintf("without its header all is lost; keep a copy elsewhere: %s", r.backupCommand())
	}
	return nil
}

// backupCommand copies the header.
func (r *creationReport) backupCommand() string {
	words := "serpcrypt header backup "
	if r.HeaderFile != "" {
		words += "--header " + shellQuote(r.HeaderFile) + " "
	}
	return words + shellQuote(r.Container) + " " + shellQuote(r.Container+".header")
}
