package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// What the shells' scripts are told beside candidates: to complete as they do it
// by themselves.
const (
	completeFiles   = ":files"
	completeFolders = ":folders"
)

// candidate is a word that may come next, and what it means.
type candidate struct{ word, about string }

// completeCommand prints what may stand at the end of a command line, for the
// scripts in completion/: a candidate a line, with a tab before what it means. It
// only looks: it asks for no passphrase and unlocks nothing. It is not for people.
func completeCommand() *cli.Command {
	return &cli.Command{
		Name:      "complete",
		Hidden:    true,
		Usage:     "print what may come next (started by the shell's completion)",
		UsageText: "serpcrypt complete -- WORD ...",
		Action: func(c *cli.Context) error {
			for _, found := range parseUnfinished(newApp(), c.Args().Slice()).candidates() {
				if printable(found.word) != found.word {
					continue // a line cannot hold it
				}
				infof("%s\t%s", found.word, found.about)
			}
			return nil
		},
	}
}

// unfinished is a command line up to the cursor.
type unfinished struct {
	app       *cli.App
	path      []string       // names of the command so far
	command   *cli.Command   // nil before its first name
	commands  []*cli.Command // whose names may follow
	values    map[string]string
	arguments []string
	onlyArgs  bool     // "--" was there
	flag      cli.Flag // whose value is under the cursor, or nil
	word      string   // under the cursor
}

// parseUnfinished reads the words behind the program's name. The last one is under
// the cursor, and may be empty.
func parseUnfinished(app *cli.App, words []string) *unfinished {
	u := &unfinished{app: app, commands: app.Commands, values: map[string]string{}}
	if len(words) == 0 {
		return u
	}
	last := len(words) - 1
	for _, word := range words[:last] {
		u.read(word)
	}
	u.word = words[last]
	if name, value, isValue := strings.Cut(u.word, "="); isValue && u.isFlag(name) {
		u.flag, u.word = u.findFlag(name), value
	}
	return u
}

func (u *unfinished) isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && u.flag == nil && !u.onlyArgs
}

func (u *unfinished) findFlag(word string) cli.Flag {
	flag, _ := findFlag(u.app, u.command, nil, strings.TrimLeft(word, "-"))
	return flag
}

// read takes a whole word.
func (u *unfinished) read(word string) {
	name, value, hasValue := strings.Cut(word, "=")
	next := findCommand(u.commands, word)
	switch {
	case u.flag != nil:
		u.values[u.flag.Names()[0]] = word
		u.flag = nil
	case u.onlyArgs:
		u.arguments = append(u.arguments, word)
	case word == "--":
		u.onlyArgs = true
	case u.isFlag(word):
		flag := u.findFlag(name)
		if flag != nil && hasValue {
			u.values[flag.Names()[0]] = value
		} else if flag != nil && takesValue(flag) {
			u.flag = flag
		}
	case next != nil:
		u.path, u.command, u.commands = append(u.path, word), next, next.Subcommands
	case word == helpWord && u.command == nil:
	default:
		u.arguments = append(u.arguments, word)
	}
}

func (u *unfinished) candidates() []candidate {
	switch {
	case u.flag != nil:
		return u.flagValues()
	case !u.onlyArgs && strings.HasPrefix(u.word, "-"):
		return u.flags()
	case len(u.commands) > 0:
		return u.commandNames()
	case u.command != nil:
		return u.argumentValues()
	}
	return nil
}

func (u *unfinished) commandNames() (found []candidate) {
	for _, c := range u.commands {
		if !c.Hidden {
			found = append(found, candidate{c.Name, c.Usage})
		}
	}
	if u.command == nil {
		found = append(found, candidate{helpWord, "say how a command is used"})
	}
	return found
}

// flags returns those of the command, and those of every command.
func (u *unfinished) flags() (found []candidate) {
	flags := append(slices.Clone(u.app.Flags), cli.HelpFlag)
	if u.command == nil {
		flags = append(flags, cli.VersionFlag)
	} else {
		flags = append(slices.Clone(u.command.Flags), flags...)
	}
	for _, flag := range flags {
		if isHidden(flag) || slices.ContainsFunc(found, func(c candidate) bool { return c.word == "--"+flag.Names()[0] }) {
			continue
		}
		_, usage, _ := strings.Cut(flag.String(), "\t")
		found = append(found, candidate{"--" + flag.Names()[0], usage})
	}
	return found
}

func isHidden(flag cli.Flag) bool {
	f, ok := flag.(cli.VisibleFlag)
	return ok && !f.IsVisible()
}
