package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"serpcrypt/internal/bench"
	"serpcrypt/internal/load"
)

func benchCommand() *cli.Command {
	suites := strings.Join(bench.Suites(), "|")
	return &cli.Command{
		Name:        "bench",
		Usage:       "measure how fast the cipher, the hash, the key derivation and open volumes are here",
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
		Load:     loadProgram,
	})
	p.finish()
	if err != nil {
		return benchError(err)
	}
	if c.Bool("json") {
		return printJSON(report)
	}
	return report.WriteTables(screen.out, benchLayout(os.Stdout))
}

// benchLayout is plain where there is nobody to look at bars.
func benchLayout(out *os.File) bench.Layout {
	if !isTerminal(out) {
		return bench.Layout{}
	}
	columns, _, err := term.GetSize(int(out.Fd()))
	if err != nil || columns <= 0 {
		columns = 80
	}
	return bench.Layout{Columns: columns, Blocks: os.Getenv("TERM") != "dumb" && isUTF8()}
}

// isUTF8 reports whether the locale is one of UTF-8.
func isUTF8() bool {
	locale := strings.ToUpper(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	return strings.HasSuffix(locale, ".UTF-8") || strings.HasSuffix(locale, ".UTF8")
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
	return explainFuse(err)
}

const benchLoadName = "bench-load"

// benchLoadCommand makes the requests by which volumes are measured. It is not
// for people.
func benchLoadCommand() *cli.Command {
	return &cli.Command{
		Name:   benchLoadName,
		Hidden: true,
		Usage:  "make requests (started by bench)",
		Action: func(*cli.Context) error { return load.Serve(os.Stdin, os.Stdout) },
	}
}

func loadProgram() *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"serpcrypt", benchLoadName}
	return cmd
}
