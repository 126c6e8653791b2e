// Serpcrypt makes, opens and checks encrypted containers in the LUKS format,
// with the Serpent block cipher.
//
// Each command has a file of its name, and more that begin with it. Beside these:
//
//	args, help, complete, manual   the command line, and what explains it
//	tui, exit, size, duration      words, exit codes and hints, numbers for people
//	terminal, progress, interrupt  who sits there: questions, waiting, Ctrl-C
//	container, locked, shares      the files of a container, and who is in the way
//	passphrase, keyfile, unlock    from what a person gives to the volume key
//	pbkdf, unlocktime              what a key slot costs
//	kernel                         which code computes
//	runstate                       the runtime folder: what is open, where
//	serve                          the process that serves an open container
//	fuse, program, sizedfile       what the system has: FUSE, programs, space
package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/secret"
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version string

func main() { os.Exit(start(os.Args)) }

// start does what the program is for under the name by which it was started, and
// returns the exit code.
func start(args []string) int {
	if isMountHelper(args) {
		return runMountHelper(args[1:])
	}
	return run(args)
}

// run does what the command line asks for and returns the exit code.
func run(args []string) int {
	keepInherited()
	ctx, stop := untilSignal()
	defer stop()
	app := newApp()
	args, err := reorder(app, args)
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	if err == nil {
		err = screen.lost
	}
	if err == nil {
		return exitOK
	}
	// What was under way may have failed in its own words because of the
	// signal: that is still an interruption.
	var interrupted *signalError
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &interrupted) {
		_, hint := explain(err)
		err = withHint(interrupted, hint)
	}
	report(err)
	code, _ := explain(err)
	return code
}

func newApp() *cli.App {
	cli.HelpFlag = &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "say how it is used"}
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "print the version"}
	cli.VersionPrinter = func(c *cli.Context) { infof("%s %s", c.App.Name, c.App.Version) }
	app := &cli.App{
		Name:                  "serpcrypt",
		Usage:                 "encrypted containers with the Serpent cipher",
		UsageText:             "serpcrypt COMMAND [options] [arguments]",
		Description:           "serpcrypt create --size 64M --fs ext4 box.luks",
		Version:               programVersion(),
		Flags:                 globalFlags(),
		Commands:              commands(),
		Before:                prepare,
		CustomAppHelpTemplate: appHelp,
		HideHelpCommand:       true,
		Writer:                screen.out,
		ErrWriter:             screen.err,
		ExitErrHandler:        func(*cli.Context, error) {}, // only main exits
		OnUsageError:          asUsageError,
		Action: func(*cli.Context) error {
			return failf(exitUsage, hintHelp(nil), "a command is missing")
		},
	}
	hideDefaults(append([]cli.Flag{cli.HelpFlag, cli.VersionFlag}, app.Flags...))
	dressCommands(app.Commands)
	return app
}

// dressCommands gives the commands, and those below them, what all have alike.
func dressCommands(commands []*cli.Command) {
	for _, command := range commands {
		hideDefaults(command.Flags)
		command.OnUsageError = asUsageError
		command.CustomHelpTemplate = commandHelp
		command.HideHelpCommand = true
		if len(command.Subcommands) > 0 {
			command.CustomHelpTemplate = groupHelp
			command.Action = func(c *cli.Context) error {
				return failf(exitUsage, hintHelp(commandPath(c)), "a command of %s is missing", c.Command.Name)
			}
		}
		dressCommands(command.Subcommands)
	}
}

// commandPath returns the words of the command that runs: "key", "add".
func commandPath(c *cli.Context) []string {
	words := strings.Fields(c.Command.HelpName)
	return words[min(1, len(words)):]
}

// hideDefaults keeps "(default: false)" out of the help.
func hideDefaults(flags []cli.Flag) {
	for _, flag := range flags {
		if f, ok := flag.(*cli.BoolFlag); ok {
			f.DisableDefaultText = true
		}
	}
}

func commands() []*cli.Command {
	return append([]*cli.Command{
		createCommand(),
		openCommand(),
		closeCommand(),
		statusCommand(),
		verifyCommand(),
		dumpCommand(),
		importCommand(),
		exportCommand(),
		keyCommand(),
		headerCommand(),
		resizeCommand(),
		eraseCommand(),
		repairCommand(),
		convertCommand(),
		configCommand(),
		benchCommand(),
		serveCommand(),
		benchLoadCommand(),
		manualCommand(),
		completeCommand(),
	}, apartCommands()...)
}

func globalFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: "json", Usage: "print one JSON document instead of text"},
		&cli.BoolFlag{Name: "batch-mode", Aliases: []string{"q"}, Usage: "ask nothing: every answer is yes; show neither progress nor notes"},
		&cli.BoolFlag{Name: "debug", Usage: "tell on standard error what is done"},
	}, kernelFlags()...)
}

// prepare runs before every command: it makes the process safe to hold keys,
// and refuses to work with code that computes wrong.
func prepare(c *cli.Context) error {
	screen.quiet, screen.debug = c.Bool("batch-mode"), c.Bool("debug")
	if err := secret.HardenProcess(); err != nil {
		return err
	}
	return checkKernels(c)
}

// wrongValue is how cli tells of a flag's value that cannot be parsed.
var wrongValue = regexp.MustCompile(`^invalid (?:boolean )?value ("(?:[^"\\]|\\.)*") for (?:flag )?(-[^:]+): `)

func asUsageError(c *cli.Context, err error, _ bool) error {
	hint := hintHelp(commandPath(c))
	found := wrongValue.FindStringSubmatch(err.Error())
	if found == nil {
		return failf(exitUsage, hint, "%w", err)
	}
	value, flag := found[1], found[2]
	if len(flag) > len("-T") {
		flag = "-" + flag
	}
	return failf(exitUsage, hint, "%s: %s is not understood", flag, value)
}

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
