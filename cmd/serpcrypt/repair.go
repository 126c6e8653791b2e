package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"serpcrypt/volume"
)

func repairCommand() *cli.Command {
	return &cli.Command{
		Name:        "repair",
		Usage:       "mend a damaged header where that needs no guess",
		UsageText:   "serpcrypt repair [options] CONTAINER",
		Description: "serpcrypt repair --backup box.damaged box.luks",
		Flags: []cli.Flag{
			headerFlag(),
			&cli.StringFlag{Name: "backup", DefaultText: "CONTAINER.damaged-header", Usage: "first copy the damaged header to a new `FILE`"},
		},
		Action: runRepair,
	}
}

// repairDocument is what --json prints.
type repairDocument struct {
	Container string   `json:"container"`
	Mended    []string `json:"mended"`
	Backup    string   `json:"backup,omitempty"`
}

func runRepair(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	path := args[0]
	if c.IsSet("backup") && c.String("backup") == "" {
		return usagef("--backup is empty")
	}
	file, err := editContainer(c, path)
	if err != nil {
		return err
	}
	defer file.close()
	d := repairDocument{Container: path, Mended: []string{}}
	var refused error
	agrees := func(fault *volume.FormatError) bool {
		err := confirm(c.Context, fmt.Sprintf("%s: %s. Key slot %d will be disabled", path, errorText(fault), fault.Slot))
		refused = errors.Join(refused, err)
		return err == nil
	}
	backup := func() error {
		d.Backup, err = backUpDamaged(c, file)
		return err
	}
	mended, err := volume.Repair(c.Context, file.header, agrees, backup)
	if err != nil {
		return err
	}
	d.Mended = append(d.Mended, mended...)
	if c.Context.Err() != nil && len(mended) == 0 {
		return context.Cause(c.Context)
	}
	if c.Bool("json") {
		err = printJSON(d)
	} else {
		d.show()
	}
	return errors.Join(err, refused)
}

// backUpDamaged copies the header to where --backup says, or beside the
// container.
func backUpDamaged(c *cli.Context, file *container) (string, error) {
	to := c.String("backup")
	if to == "" {
		from := file.path
		if file.isDetached() {
			from = c.String("header")
		}
		if file.header.IsDevice() {
			from = filepath.Base(from) // next to a device is no disk
		}
		to = from + ".damaged-header"
	}
	_, err := backUpHeader(c, file, to)
	if err != nil {
		return "", withHint(fmt.Errorf("nothing is mended without a backup: %w", err), "--backup FILE says where to write it")
	}
	return to, nil
}

func (d repairDocument) show() {
	if len(d.Mended) == 0 {
		infof("Nothing is mended in the header of %s", d.Container)
		return
	}
	infof("The header of %s as it was is in %s", d.Container, d.Backup)
	for _, what := range d.Mended {
		infof("  %s", what)
	}
}
