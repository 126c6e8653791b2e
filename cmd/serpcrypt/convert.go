package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"serpcrypt/volume"
)

func convertCommand() *cli.Command {
	return &cli.Command{
		Name:        "convert",
		Usage:       "give a container the header of the other format, where the layout allows it",
		UsageText:   "serpcrypt convert --type luks1|luks2 [options] CONTAINER",
		Description: "serpcrypt convert --type luks2 box.luks",
		Flags: []cli.Flag{
			headerFlag(),
			&cli.StringFlag{Name: "type", Usage: "`FORMAT` that it is to have: luks1 or luks2"},
		},
		Action: runConvert,
	}
}

// convertDocument is what --json prints.
type convertDocument struct {
	Container string         `json:"container"`
	Type      string         `json:"type"`
	KeySlots  []slotDocument `json:"key_slots"`
}

// runConvert locks the container: what is open relies on where things are.
func runConvert(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	path := args[0]
	if !c.IsSet("type") {
		return usagef("--type is missing: luks1 or luks2")
	}
	to, err := parseType(c)
	if err != nil {
		return err
	}
	file, err := lockToChange(c, path)
	if err != nil {
		return err
	}
	defer file.close()
	question := fmt.Sprintf("the header of %s will be written anew, as %s: serpcrypt header backup first keeps a copy of the present one", path, to)
	if err := confirm(c.Context, question); err != nil {
		return err
	}
	if err := volume.Convert(c.Context, file.header, to); err != nil {
		return err
	}
	if c.Bool("json") {
		h, err := volume.ReadHeader(file.headerStores())
		if err != nil {
			return err
		}
		return printJSON(convertDocument{path, h.Type, slotDocuments(h, nil)})
	}
	infof("%s is %s now", path, to)
	return nil
}
