package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/fsprobe"
	"serpcrypt/internal/newfile"
	"serpcrypt/volume"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:        "export",
		Usage:       "write the plaintext out of a container, without mounting",
		UsageText:   "serpcrypt export [options] CONTAINER DEST|-",
		Description: "serpcrypt export box.luks plain.img",
		Flags: append([]cli.Flag{
			headerFlag(),
			&cli.BoolFlag{Name: "force", Usage: "replace DEST if it exists"},
			&cli.BoolFlag{Name: "sparse", Usage: "leave holes in DEST where there are zeros, or where CONTAINER has holes; they show what is in use"},
		}, unlockFlags()...),
		Action: runExport,
	}
}

func runExport(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER", "DEST")
	if err != nil {
		return err
	}
	path, dest := args[0], args[1]
	if dest == stdio && c.Bool("json") {
		return usagef("standard output cannot take both data and JSON")
	}
	if dest == stdio && c.Bool("sparse") {
		return usagef("--sparse leaves holes, and standard output can have none")
	}
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
	out, err := openDest(c.Context, dest, file, c.Bool("force"))
	if err != nil {
		return err
	}
	defer out.discard()

	key, err := unlock(c, file.stores(), request)
	if err != nil {
		return err
	}
	defer key.Close()
	v, err := volume.Open(file.stores(), key, volume.Options{Kernel: kernel, ReadOnly: true})
	if err != nil {
		return err
	}
	defer v.Close()
	if err := warnOfUnfinished(v); err != nil {
		return err
	}
	p := newProgress("exporting")
	err = out.take(c.Context, v, c.Bool("sparse"), p.update)
	p.finish()
	if err != nil {
		return err
	}
	if c.Context.Err() != nil {
		return context.Cause(c.Context)
	}
	if err := out.publish(); err != nil {
		return err
	}
	switch {
	case dest == stdio: // nothing may stand behind the plaintext
	case c.Bool("json"):
		return printJSON(copyDocument{path, v.Size()})
	default:
		infof("Wrote %s to %s", formatExactly(v.Size()), dest)
	}
	return nil
}

// warnOfUnfinished tells of an import that has not been finished. What there is may be
// wanted all the same.
func warnOfUnfinished(v *volume.Volume) error {
	found, err := fsprobe.Probe(v)
	if err == nil && found != nil && found.Name == fsprobe.UnfinishedImport {
		warnf("%s", unfinishedText)
	}
	return err
}

// destination is where plaintext goes: standard output, or a new file that
// gets its name when it is whole.
type destination struct {
	file     *newfile.File // nil for standard output
	replace  bool
	replaced *volume.File // what has the name so far, locked; nil if nothing
}

// openDest refuses what would show the plaintext or destroy something.
func openDest(ctx context.Context, dest string, box *container, force bool) (*destination, error) {
	if dest == stdio {
		if isTerminal(os.Stdout) {
			return nil, failf(exitUsage, "send it to a file or another program", "the plaintext does not go to a terminal")
		}
		return &destination{}, nil
	}
	path := dest
	var old *volume.File
	_, err := os.Lstat(dest)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if exists {
		if !force {
			return nil, failf(exitBusy, "--force replaces it", "%s exists", dest)
		}
		if path, err = filepath.EvalSymlinks(dest); err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, failf(exitBad, "export to - and send that there", "%s is not a regular file", dest)
		}
		if box.isSame(info) {
			return nil, usagef("%s is the container itself", dest)
		}
		if old, err = holdReplaced(ctx, path, dest, info.Size()); err != nil {
			return nil, err
		}
	}
	file, err := newfile.Create(path)
	if err != nil {
		if old != nil {
			old.Close()
		}
		return nil, err
	}
	return &destination{file: file, replace: exists, replaced: old}, nil
}

// interruptibleWriter leaves a Write to itself when the context ends: a pipe
// that nobody reads waits for ever. The program must end soon after.
type interruptibleWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w *interruptibleWriter) Write(p []byte) (int, error) {
	err := untilDone(w.ctx, func() error {
		_, err := w.w.Write(p)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// take writes the volume.
func (d *destination) take(ctx context.Context, v *volume.Volume, sparse bool, progress volume.Progress) error {
	if d.file == nil {
		return v.CopyOut(ctx, &interruptibleWriter{ctx, os.Stdout}, progress)
	}
	if err := setLength(d.file, v.Size(), sparse); err != nil {
		return err
	}
	return v.CopyTo(ctx, d.file, sparse, progress)
}

func (d *destination) publish() error {
	if d.file == nil {
		return nil
	}
	return d.file.Publish(d.replace)
}

func (d *destination) discard() {
	if d.file != nil {
		d.file.Discard()
	}
	if d.replaced != nil {
		d.replaced.Close()
	}
}
