package main

import (
	"github.com/urfave/cli/v2"

	"serpcrypt/volume"
)

func configCommand() *cli.Command {
	return &cli.Command{
		Name:        "config",
		Usage:       "set label, subsystem or UUID",
		UsageText:   "serpcrypt config [--label TEXT] [--subsystem TEXT] [--uuid UUID] CONTAINER",
		Description: "serpcrypt config --label holiday box.luks",
		Flags: []cli.Flag{
			headerFlag(),
			&cli.StringFlag{Name: "label", Usage: "`TEXT` by which the container is found (LUKS2)"},
			&cli.StringFlag{Name: "subsystem", Usage: "`TEXT` that says what the container is for (LUKS2)"},
			&cli.StringFlag{Name: "uuid", Usage: "new `UUID`; empty: a random one"},
		},
		Action: runConfig,
	}
}

// configDocument is what --json prints.
type configDocument struct {
	Container string `json:"container"`
	UUID      string `json:"uuid"`
	Label     string `json:"label"`
	Subsystem string `json:"subsystem"`
}

func runConfig(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	path := args[0]
	given := func(name string) *string {
		if !c.IsSet(name) {
			return nil
		}
		value := c.String(name)
		return &value
	}
	texts := volume.Texts{UUID: given("uuid"), Label: given("label"), Subsystem: given("subsystem")}
	if texts == (volume.Texts{}) {
		return failf(exitUsage, hintHelp(commandPath(c)), "nothing is to be set")
	}
	file, err := editContainer(c, path)
	if err != nil {
		return err
	}
	defer file.close()
	if err := volume.Configure(c.Context, file.header, texts); err != nil {
		return namingFlag(err)
	}
	h, err := volume.ReadHeader(file.headerStores())
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(configDocument{path, h.UUID, h.Label, h.Subsystem})
	}
	infof("%s has UUID %s", path, printable(h.UUID))
	if h.Label != "" || texts.Label != nil {
		infof("  label: %s", orNone(printable(h.Label)))
	}
	if h.Subsystem != "" || texts.Subsystem != nil {
		infof("  subsystem: %s", orNone(printable(h.Subsystem)))
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return text
}
