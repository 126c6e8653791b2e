package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"serpcrypt/cipher/serpent"
	"serpcrypt/volume"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check that a container is whole and that every part decrypts",
		UsageText: "serpcrypt verify [options] CONTAINER",
		Description: `serpcrypt verify box.luks
   serpcrypt verify --fsck box.luks`,
		Flags: append([]cli.Flag{
			headerFlag(),
			&cli.BoolFlag{Name: "fsck", Usage: "have the file system inside checked, too, by its own program; that writes nothing"},
		}, unlockFlags()...),
		Action: runVerify,
	}
}

func runVerify(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	path := args[0]
	request := keyRequest{container: path}
	if err := checkUnlockFlags(c, request); err != nil {
		return err
	}
	kernel, err := chosenKernel(c)
	if err != nil {
		return err
	}
	file, err := lockContainer(c, path, true)
	if err != nil {
		return err
	}
	defer file.close()
	found, closed := verifyFile(c, file, request, volume.Options{Kernel: kernel})
	if found == nil {
		return closed
	}
	if c.Bool("json") {
		var d *verifyDocument
		if d, err = newVerifyDocument(path, found); err == nil {
			err = printJSON(d)
		}
	} else {
		showReport(path, found)
	}
	if err != nil {
		return err
	}
	if err := verdict(path, found); err != nil {
		return err
	}
	return closed
}

// findings are what is known of a container when all has been looked at.
type findings struct {
	*volume.Report
	fsck *fsckReport // nil if it was not asked for, or nothing could be decrypted
}

// verifyFile gets a key if the header is good enough to use it. If no key opens
// the container, that is the error, beside a report of all that can be told
// without.
func verifyFile(c *cli.Context, file *container, r keyRequest, o volume.Options) (*findings, error) {
	key, err := unlock(c, file.stores(), r)
	var fault *volume.FormatError
	switch {
	case errors.As(err, &fault): // which Verify finds, too, and all others
		err = nil
	case errors.Is(err, volume.ErrPassphrase), errors.Is(err, volume.ErrNoKeySlot):
	case err != nil:
		return nil, err
	default:
		defer key.Close()
		return verifyPlaintext(c, file, key, o)
	}
	report, failure := volume.Verify(c.Context, file.stores(), nil, o, nil)
	if failure != nil {
		return nil, failure
	}
	return &findings{Report: report}, err
}

// verifyPlaintext is verifyFile for who has the key.
func verifyPlaintext(c *cli.Context, file *container, key *volume.Key, o volume.Options) (f *findings, err error) {
	var check *fsck
	var v *volume.Volume
	if c.Bool("fsck") {
		o := o
		o.ReadOnly = true
		if v, err = volume.Open(file.stores(), key, o); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, v.Close()) }()
		if check, err = newFsck(v, file.path); err != nil {
			return nil, err
		}
	}
	p := newProgress("verifying")
	report, err := volume.Verify(c.Context, file.stores(), key, o, p.update)
	p.finish()
	if err != nil {
		return nil, err
	}
	f = &findings{Report: report}
	if check != nil {
		if f.fsck, err = check.run(c.Context, v); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// cannotSee is what a person must know who trusts the result.
const cannotSee = "the format does not authenticate: a payload byte that somebody or something changed decrypts to other bytes, and no check can tell"

// showReport prints a line for each check, with what was wrong below it.
func showReport(path string, f *findings) {
	r := f.Report
	if h := r.Header; h != nil {
		key := "no key slot"
		if h.KeyBytes > 0 {
			key = fmt.Sprintf("%d-bit key", h.KeyBytes*8)
		}
		infof("%s: %s, %s-%s, %s, %s", path, h.Type, printable(h.Cipher), printable(h.Mode), key, printable(h.Hash))
	} else {
		infof("%s:", path)
	}
	for _, check := range r.Checks {
		infof("  %-12s %-8s %s", check.Name, check.Result, describeCheck(check, r))
		for _, fault := range check.Faults {
			infof("      %s", errorText(fault))
		}
		if check.More > 0 {
			infof("      ... and %d more", check.More)
		}
	}
	if f.fsck != nil {
		f.fsck.show()
	}
	infof("Not to be seen: %s.", cannotSee)
}

// describeCheck says what the result of a check is about.
func describeCheck(check volume.Check, r *volume.Report) string {
	switch {
	case check.Name == volume.CheckFileSystem && check.Result == volume.Skipped && r.Bytes > 0:
		return "none that is known"
	case check.Result == volume.Skipped:
		return ""
	}
	switch check.Name {
	case volume.CheckHeader:
		return "every field"
	case volume.CheckMaterial:
		return "the material of each in use looks random"
	case volume.CheckKeySlot:
		return fmt.Sprintf("slot %d opens with the passphrase", r.Slot)
	case volume.CheckDigest:
		return "the volume key is the right one"
	case volume.CheckPayload:
		how := fmt.Sprintf("read and decrypted by %s", r.Kernel)
		if r.Kernel != serpent.Generic {
			how += fmt.Sprintf(" and by %s, compared", serpent.Generic)
		}
		return fmt.Sprintf("%s (%d sectors) %s", formatSize(r.Bytes), r.Bytes/int64(r.Header.SectorSize), how)
	case volume.CheckFileSystem:
		return r.FileSystem.Name
	}
	return ""
}

// verdict is nil only if everything held.
func verdict(path string, f *findings) error {
	faults := 0
	for _, check := range f.Checks {
		faults += len(check.Faults) + check.More
	}
	first := f.Err()
	switch {
	case faults == 1:
		return failf(exitBad, "", "%s is damaged: %w", path, first)
	case faults > 1:
		return failf(exitBad, "", "%s is damaged: %d faults, the first: %w", path, faults, first)
	case f.fsck != nil:
		return f.fsck.verdict(path)
	}
	return nil
}
