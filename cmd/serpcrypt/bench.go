package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/bench"
)

func benchCommand() *cli.Command {
	suites := strings.Join(bench.Suites(), "|")
	return &cli.Command{
		Name:        "bench",
		Usage:       "measure how fast the cipher, the hash and the key derivation are here",
		UsageText:   fmt.Sprintf("serpcrypt bench [options] [%s ...]", suites),
		Description: "serpcrypt bench --kernel generic serpent",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "time", Value: bench.DefaultEach, Usage: "how long each figure is measured, as a `DURATION`"},
		},
		Action: runBench,
	}
}

func runBench(c *cli.Context) error {
	kernel, err := chosenKernel(c)
	if err != nil {
		return err
	}
	each := c.Duration("time")
	if each <= 0 {
		return usagef("--time must be more than nothing")
	}
	p := newProgress("measuring")
	report, err := bench.Run(c.Context, bench.Options{
		Suites:   c.Args().Slice(),
		Kernel:   kernel,
		Each:     each,
		Progress: p.step,
	})
	p.finish()
	if err != nil {
		return benchError(err)
	}
	if c.Bool("json") {
		return printJSON(report)
	}
	return report.WriteTables(screen.out)
}

func benchError(err error) error {
	var unknown *bench.UnknownSuiteError
	if errors.As(err, &unknown) {
		return failf(exitUsage, hintHelp([]string{"bench"}), "%w", err)
	}
	var mismatch *bench.MismatchError
	if errors.As(err, &mismatch) {
		return failf(exitBad, hintMismatch, "%w", err)
	}
	return err
}
