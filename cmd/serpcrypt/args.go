package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

const (
	stdio    = "-" // a path that stands for standard input or output
	helpWord = "help"
)

// reorder sorts the words of a command line into the one order that cli
// understands: program, global flags, command, its flags, "--", arguments.
// A person may write them in any order; after "--" every word is an argument.
func reorder(app *cli.App, words []string) ([]string, error) {
	var global, local, arguments []string
	var command *cli.Command
	commands, path := app.Commands, []string(nil)
	askedForHelp := false

	for i := 1; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--" && command == nil:
			return nil, failf(exitUsage, hintHelp(nil), "a command is missing")
		case word == "--":
			arguments = append(arguments, words[i+1:]...)
			i = len(words)
		case len(word) > 1 && word[0] == '-':
			name, _, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
			flag, isGlobal := findFlag(app, command, words[i+1:], name)
			if flag == nil {
				return nil, unknownFlag(path, word)
			}
			askedForHelp = askedForHelp || slices.Contains(cli.HelpFlag.Names(), name)
			taken := []string{word}
			if takesValue(flag) && !hasValue {
				if i+1 == len(words) {
					return nil, failf(exitUsage, hintHelp(path), "%s needs a value", word)
				}
				i++
				taken = append(taken, words[i])
			}
			if isGlobal {
				global = append(global, taken...)
			} else {
				local = append(local, taken...)
			}
		case word == helpWord && command == nil:
			askedForHelp = true
			words = append(words[:len(words):len(words)], "--help")
		default:
			if next := findCommand(commands, word); next != nil && len(arguments) == 0 {
				command, commands, path = next, next.Subcommands, append(path, word)
			} else if command == nil || len(commands) > 0 {
				return nil, failf(exitUsage, hintCommands(commands, path), "unknown command %q", strings.Join(append(path, word), " "))
			} else {
				arguments = append(arguments, word)
			}
		}
	}

	ordered := append([]string{words[0]}, global...)
	ordered = append(ordered, path...)
	ordered = append(ordered, local...)
	if len(arguments) > 0 && !askedForHelp {
		ordered = append(append(ordered, "--"), arguments...)
	}
	return ordered, nil
}

// hintCommands names those that there are.
func hintCommands(commands []*cli.Command, path []string) string {
	var names []string
	for _, c := range commands {
		if !c.Hidden && c.Name != helpWord {
			names = append(names, c.Name)
		}
	}
	return "it is one of " + strings.Join(names, ", ") + "; " + hintHelp(path)
}

// findFlag looks a flag up by name. Before the command's last word is reached
// the flag may belong to the command that is still to come in rest.
func findFlag(app *cli.App, command *cli.Command, rest []string, name string) (flag cli.Flag, isGlobal bool) {
	commands := app.Commands
	if command != nil {
		commands = command.Subcommands
	}
	for _, word := range rest {
		if next := findCommand(commands, word); next != nil {
			command, commands = next, next.Subcommands
		}
	}
	if command != nil {
		for _, f := range append([]cli.Flag{cli.HelpFlag}, command.Flags...) {
			if slices.Contains(f.Names(), name) {
				return f, false
			}
		}
	}
	for _, f := range append([]cli.Flag{cli.HelpFlag, cli.VersionFlag}, app.Flags...) {
		if slices.Contains(f.Names(), name) {
			return f, true
		}
	}
	return nil, false
}

func findCommand(commands []*cli.Command, word string) *cli.Command {
	for _, c := range commands {
		if c.HasName(word) {
			return c
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// exactArgs returns the command's arguments, one for each of names, which are
// only used to say what is missing.
func exactArgs(c *cli.Context, names ...string) ([]string, error) {
	args := c.Args().Slice()
	hint := hintHelp(commandPath(c))
	if len(args) > len(names) {
		return nil, failf(exitUsage, hint, "unexpected argument %q", args[len(names)])
	}
	if len(args) < len(names) {
		return nil, failf(exitUsage, hint, "%s is missing", names[len(args)])
	}
	for i, a := range args {
		if a == "" {
			return nil, failf(exitUsage, hint, "%s is empty", names[i])
		}
	}
	return args, nil
}

// refuseJSON is for commands that print nothing that could be a document.
func refuseJSON(c *cli.Context) error {
	if c.Bool("json") {
		return failf(exitUsage, "serpcrypt status --json shows what is open", "%s prints no JSON", c.Command.Name)
	}
	return nil
}

func unknownFlag(path []string, word string) error {
	word, _, _ = strings.Cut(word, "=")
	if len(path) == 0 {
		return failf(exitUsage, hintHelp(nil), "unknown flag %s", word)
	}
	return failf(exitUsage, hintHelp(path), "%s has no flag %s", strings.Join(path, " "), word)
}

// hintHelp names the help of the command that path leads to.
func hintHelp(path []string) string {
	return strings.Join(append(append([]string{"see serpcrypt"}, path...), "--help"), " ")
}
