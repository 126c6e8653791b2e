package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"serpcrypt/cipher/serpent"
	"serpcrypt/volume"
)

func importCommand() *cli.Command {
	return &cli.Command{
		Name:        "import",
		Usage:       "write plaintext into a container, without mounting",
		UsageText:   "serpcrypt import [options] SOURCE|- CONTAINER",
		Description: "serpcrypt import plain.img box.luks",
		Flags:       append([]cli.Flag{headerFlag()}, unlockFlags()...),
		Action:      runImport,
	}
}

func runImport(c *cli.Context) error {
	args, err := exactArgs(c, "SOURCE", "CONTAINER")
	if err != nil {
		return err
	}
	source, path := args[0], args[1]
	request := keyRequest{container: path, stdinTaken: source == stdio}
	if err := checkUnlockFlags(c, request); err != nil {
		return err
	}
	kernel, err := chosenKernel(c)
	if err != nil {
		return err
	}
	file, err := lockContainer(c, path, false)
	if err != nil {
		return err
	}
	defer file.close()
	in, err := openSource(source, file)
	if err != nil {
		return err
	}
	defer in.Close()

	key, err := unlock(c, file.stores(), request)
	if err != nil {
		return err
	}
	defer key.Close()
	v, err := volume.Open(file.stores(), key, volume.Options{Kernel: kernel})
	if err != nil {
		return err
	}
	n, err := importAll(c.Context, in, v, file.data, kernel)
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	if err := file.data.CheckNamed(); err != nil {
		return withHint(err, "all was written to the file that had the name before")
	}
	if c.Bool("json") {
		return printJSON(copyDocument{path, n})
	}
	infof("Wrote %s into %s", formatExactly(n), path)
	return nil
}

// copyDocument is what --json prints after import and export.
type copyDocument struct {
	Container string `json:"container"`
	Bytes     int64  `json:"bytes"`
}

// openSource opens what is to be imported.
func openSource(source string, box *container) (*os.File, error) {
	if source == stdio {
		return os.Stdin, nil
	}
	in, err := openWithoutWaiting(source)
	if err != nil {
		return nil, err
	}
	info, err := in.Stat()
	if err == nil && info.IsDir() {
		err = failf(exitBad, "", "%s is a folder", source)
	}
	if err == nil && box.isSame(info) {
		err = usagef("%s is the container itself", source)
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// importAll copies in to the start of the volume in box, and returns how many
// bytes that were. What is too long is refused before anything is written: if the
// length of in is not known, the data wait for their end in an encrypted spool
// beside the container.
func importAll(ctx context.Context, in *os.File, v *volume.Volume, box *volume.File, k serpent.Kernel) (int64, error) {
	size, known, err := lengthOf(in)
	if err != nil {
		return 0, err
	}
	if known {
		source, err := volume.NewFile(in)
		if err != nil {
			return 0, err
		}
		if err := importSized(ctx, source, size, v, box); err != nil {
			return 0, err
		}
		_, err = in.Seek(size, io.SeekStart) // as who reads all of it leaves it
		return size, err
	}
	folder := filepath.Dir(box.OSFile().Name())
	if box.IsDevice() {
		folder = os.TempDir() // next to a device is no disk
	}
	p := newProgress("reading")
	waiting, err := newSpool(ctx, &interruptible{ctx: ctx, file: in}, folder, v.Size(), k, func(done int64) { p.update(done, 0) })
	p.finish()
	if errors.Is(err, volume.ErrTooLong) {
		return 0, tooLongError(v.Size())
	}
	if err != nil {
		return 0, err
	}
	defer waiting.close()
	return waiting.size, importSized(ctx, waiting, waiting.size, v, box)
}

func importSized(ctx context.Context, source io.ReaderAt, size int64, v *volume.Volume, box *volume.File) error {
	if size > v.Size() {
		return tooLongError(v.Size())
	}
	if err := box.CheckNamed(); err != nil { // what came before may have taken long
		return withHint(err, hintTryAgain)
	}
	p := newProgress("importing")
	defer p.finish()
	err := v.CopyIn(ctx, source, size, p.update)
	if errors.Is(err, volume.ErrUnfinished) {
		err = withHint(err, "a part is written already, in no order: import again")
	}
	return err
}

// lengthOf returns the length of a file or block device that is read from its
// beginning. Some files say 0, as those in /proc, and have something nevertheless.
func lengthOf(in *os.File) (size int64, known bool, err error) {
	info, err := in.Stat()
	if err != nil {
		return 0, false, err
	}
	isDevice := info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0
	if !info.Mode().IsRegular() && !isDevice {
		return 0, false, nil
	}
	at, err := in.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, false, err
	}
	if size, err = in.Seek(0, io.SeekEnd); err != nil {
		return 0, false, err
	}
	if _, err := in.Seek(at, io.SeekStart); err != nil {
		return 0, false, err
	}
	return size, size > 0 && at == 0, nil
}

func tooLongError(room int64) error {
	return usagef("the source is longer than the container's payload of %s; nothing was written", formatExactly(room))
}
