package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/newfile"
	"serpcrypt/volume"
)

func headerCommand() *cli.Command {
	return &cli.Command{
		Name:      "header",
		Usage:     "keep a copy of a container's header, or put it back",
		UsageText: "serpcrypt header backup|restore [options] CONTAINER FILE",
		Subcommands: []*cli.Command{
			{
				Name:        "backup",
				Usage:       "write a copy of the header, with all key slots, to a new file",
				UsageText:   "serpcrypt header backup [options] CONTAINER FILE",
				Description: "serpcrypt header backup box.luks box.header",
				Flags:       []cli.Flag{headerFlag()},
				Action:      runHeaderBackup,
			},
			{
				Name:        "restore",
				Usage:       "make a copy the container's header again",
				UsageText:   "serpcrypt header restore [options] CONTAINER FILE",
				Description: "serpcrypt header restore box.luks box.header",
				Flags: []cli.Flag{
					headerFlag(),
					&cli.BoolFlag{Name: "force", Usage: "restore also what is the header of another volume"},
				},
				Action: runHeaderRestore,
			},
		},
	}
}

// headerCopyDocument is what --json prints.
type headerCopyDocument struct {
	Container string `json:"container"`
	File      string `json:"file"`
	Bytes     int64  `json:"bytes"`
}

func runHeaderBackup(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER", "FILE")
	if err != nil {
		return err
	}
	file, err := peekContainer(c, args[0])
	if err != nil {
		return err
	}
	defer file.close()
	size, err := backUpHeader(c, file, args[1])
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(headerCopyDocument{args[0], args[1], size})
	}
	infof("Wrote the header of %s (%d bytes) to %s", args[0], size, args[1])
	if !screen.quiet {
		hintf("whoever has the copy can open the container with any passphrase that is in it, also after that has been changed")
	}
	return nil
}

// backUpHeader makes the file at path, which must not exist, for its owner to
// read, and returns its size in bytes.
func backUpHeader(c *cli.Context, file *container, path string) (int64, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return 0, err
		}
		return 0, backupExists(path)
	}
	out, err := newfile.Create(path)
	if err != nil {
		return 0, err
	}
	defer out.Discard()
	if err := volume.BackupHeader(c.Context, file.header, out); err != nil {
		return 0, err
	}
	if err := out.Chmod(0o400); err != nil {
		return 0, err
	}
	info, err := out.Stat()
	if err != nil {
		return 0, err
	}
	err = out.Publish(false)
	if errors.Is(err, fs.ErrExist) {
		err = backupExists(path)
	}
	return info.Size(), err
}

func backupExists(path string) error {
	return failf(exitBusy, "choose another name", "%s exists, and a backup replaces nothing", path)
}

func runHeaderRestore(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER", "FILE")
	if err != nil {
		return err
	}
	path, from := args[0], args[1]
	backup, err := volume.PeekFile(from)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer backup.Close()
	copied, err := volume.ReadHeader(volume.Stores{Header: backup})
	if err != nil {
		return fmt.Errorf("%s holds no header that can be restored: %w", from, err)
	}
	file, err := lockToChange(c, path)
	if err != nil {
		return err
	}
	defer file.close()
	if err := confirmRestore(c, file, copied, from); err != nil {
		return err
	}
	if err := volume.RestoreHeader(c.Context, file.stores(), backup, c.Bool("force")); err != nil {
		return err
	}
	if c.Bool("json") {
		size, err := backup.Size()
		if err != nil {
			return err
		}
		return printJSON(headerCopyDocument{path, from, size})
	}
	infof("%s has the header of %s again, UUID %s", path, from, printable(copied.UUID))
	return nil
}

// confirmRestore says what will be lost. Whether anybody still knows a passphrase
// of the copy is not to be known; that there is none in it is.
func confirmRestore(c *cli.Context, file *container, copied *volume.Header, from string) error {
	if countSlots(copied, volume.SlotEnabled) == 0 {
		warnf("%s has no key slot in use: with its header, no passphrase opens %s", from, file.path)
	}
	now, fault := volume.ReadHeader(file.headerStores())
	if now == nil {
		return confirm(c.Context, fmt.Sprintf("%s has no header that can be read (%s): it gets that of %s, UUID %s", file.path, errorText(fault), from, printable(copied.UUID)))
	}
	return confirm(c.Context, fmt.Sprintf("the header of %s and its key slots will be replaced by those of %s: keys that have been added or changed since will not open it", file.path, from))
}
