package main

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// exampleBefore has what the examples of a command need, beside a container
// box.luks with a file system in it.
var exampleBefore = map[string]string{
	"create":         "rm box.luks",
	"bench":          `serpcrypt() { command serpcrypt "$@" --time 1ms; }`,
	"close":          "mkdir box; serpcrypt open -d passphrase.txt box.luks box",
	"import":         "head -c 100000 /dev/urandom >plain.img",
	"key add":        "cp passphrase.txt old; echo another >new",
	"key change":     "serpcrypt create -q --force -d passphrase.txt --volume-key-file key --key-slot 3 --pbkdf-force-iterations 1000 box.luks",
	"key remove":     "echo another >new; serpcrypt key add -q -d passphrase.txt --new-keyfile new --key-slot 3 --pbkdf-force-iterations 1000 box.luks",
	"header restore": "serpcrypt header backup box.luks box.header",
	"resize":         `serpcrypt() { command serpcrypt "${@/#2G/64M}"; }`,
	"status":         "mkdir box; serpcrypt open -d passphrase.txt box.luks box",
	"convert":        "serpcrypt create -q --force -d passphrase.txt --type luks1 --pbkdf-force-iterations 1000 box.luks",
}

// TestExamples runs the examples of the help, which are those of the manual, as
// TestDocs does those of the documents.
func TestExamples(t *testing.T) {
	t.Parallel()
	ran := map[string]bool{}
	var run func(name string, commands []*cli.Command)
	run = func(name string, commands []*cli.Command) {
		for _, c := range visible(commands) {
			name := strings.TrimSpace(name + " " + c.Name)
			ran[name] = true
			run(name, c.Subcommands)
			if len(c.Subcommands) == 0 {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					runExamples(t, name, c.Description)
				})
			}
		}
	}
	run("", newApp().Commands)
	for name := range exampleBefore {
		if !ran[name] {
			t.Errorf("there is no command %s", name)
		}
	}
}

func runExamples(t *testing.T, name, description string) {
	var commands []docCommand
	for i, line := range examples(description) {
		commands = append(commands, docCommand{"serpcrypt " + name, i + 1, line})
	}
	if len(commands) == 0 {
		t.Fatal("there are no examples")
	}
	const before = passphraseFile + "head -c 64 /dev/urandom >key\n" +
		"serpcrypt create -q --size 32M --fs ext4 --sparse -d passphrase.txt --pbkdf-force-iterations 1000 box.luks\n" +
		"trap 'command serpcrypt close --all' EXIT\n"
	runDoc(t, docSettings{prepare: before + exampleBefore[name], mounts: true}, commands)
}
