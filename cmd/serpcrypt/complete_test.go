package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// candidatesOf returns what may follow words, the last of which is under the cursor.
func candidatesOf(words ...string) (found []string) {
	for _, c := range parseUnfinished(newApp(), words).candidates() {
		found = append(found, c.word)
	}
	return found
}

// visible returns the commands for people.
func visible(commands []*cli.Command) []*cli.Command {
	return slices.DeleteFunc(slices.Clone(commands), func(c *cli.Command) bool { return c.Hidden })
}

func TestCandidates(t *testing.T) {
	box := newBox(t, "--key-slot", "3")
	t.Setenv("HOME", filepath.Dir(box))
	for _, test := range []struct {
		words string // divided at spaces; the last one is under the cursor
		want  string // all, in their order; or with "..." some of them
	}{
		{"", "create open close status verify ... bench help"},
		{"help ", "create open ..."},
		{"key ", "list add change remove test"},
		{"help key ", "list add change remove test"},
		{"nothing ", "create ..."},
		{"-", "--json --batch-mode --debug --kernel --sha1-kernel --help --version"},
		{"config -", "--header --label --subsystem --uuid --json --batch-mode --debug --kernel --sha1-kernel --help"},
		{"--json config --l", "--header --label ..."},
		{"config -- -", ":files"},
		{"convert --type ", "luks1 luks2"},
		{"convert --type=", "luks1 luks2"},
		{"convert --type=luks1 ", ":files"},
		{"convert --type luks1 ", ":files"},
		{"--kernel ", "auto generic ..."},
		{"dump --kernel generic ", ":files"},
		{"dump box --sha1-kernel ", "auto ... looped ..."},
		{"create --hash ", "sha1 ... whirlpool"},
		{"create --pbkdf ", "pbkdf2 argon2id argon2i"},
		{"create --cipher ", "serpent-xts-plain64 ..."},
		{"create -c ", "serpent-xts-plain64 ..."},
		{"create --size ", ""},
		{"create --size 5M ", ":files"},
		{"create --key-file ", ":files"},
		{"create -d ", ":files"},
		{"create --sparse ", ":files"},
		{"open ", ":files"},
		{"open -r ", ":files"},
		{"open box ", ":folders"},
		{"open box mnt ", ""},
		{"resize ", ":files"},
		{"resize box ", ""},
		{"import ", ":files"},
		{"import - ", ":files"},
		{"export box ", ":files"},
		{"header backup box ", ":files"},
		{"header backup box file ", ""},
		{"bench ", "serpent sectors sha1 kdf unlock volume"},
		{"bench sha1 ", "serpent sectors ..."},
		{"key remove BOX --key-slot ", "3"},
		{"key remove BOX --key-slot=", "3"},
		{"key remove ~/box -S ", "3"},
		{"verify payload --header BOX -S ", "3"},
		{"key add BOX --key-slot ", "0 1 2 4 ..."},
		{"key add missing --key-slot ", ""},
		{"key add --key-slot ", ""},
		{"key add HERE --key-slot ", ""},
	} {
		words := strings.NewReplacer("BOX", box, "HERE", filepath.Dir(box)).Replace(test.words)
		got := candidatesOf(strings.Split(words, " ")...)
		want := strings.Fields(test.want)
		rest := got
		for i, word := range want {
			at := slices.Index(rest, word)
			switch {
			case word == "...":
			case at < 0, at > 0 && (i == 0 || want[i-1] != "..."):
				t.Errorf("%s: got %q, want %s", words, got, test.want)
			default:
				rest = rest[at+1:]
			}
		}
		if len(rest) > 0 && !strings.HasSuffix(test.want, "...") {
			t.Errorf("%s: got %q, want %s", words, got, test.want)
		}
	}
}

// TestCandidatesAreAccepted: every flag and every value that is offered is one.
func TestCandidatesAreAccepted(t *testing.T) {
	var all func(path []string, commands []*cli.Command) int
	all = func(path []string, commands []*cli.Command) (n int) {
		for _, c := range commands {
			path := append(slices.Clone(path), c.Name)
			flags := candidatesOf(append(path, "-")...)
			for _, flag := range flags {
				if _, err := reorder(newApp(), append(append([]string{"serpcrypt"}, path...), flag)); err != nil && !strings.HasSuffix(err.Error(), "needs a value") {
					t.Error(err)
				}
			}
			for _, f := range c.Flags {
				if !slices.Contains(flags, "--"+f.Names()[0]) {
					t.Errorf("%q: --%s is not offered", path, f.Names()[0])
				}
			}
			n += len(flags) + all(path, c.Subcommands)
		}
		return n
	}
	if n := all(nil, visible(newApp().Commands)); n < 200 {
		t.Errorf("only %d flags are offered", n)
	}
	app := newApp()
	for name := range knownValues {
		if !hasFlag(app.Flags, app.Commands, name) {
			t.Errorf("there is no flag --%s", name)
		}
	}
	for _, kernel := range []string{"--kernel", "--sha1-kernel"} {
		for _, value := range candidatesOf(kernel, "") {
			serpcrypt(t, "", "status", kernel, value).must(t, exitOK)
		}
	}
}

// TestArgumentNames: each name that the usage has for an argument is known to the
// completion, or is known to be none that it can help with.
func TestArgumentNames(t *testing.T) {
	helpless := []string{"SIZE"}
	used := map[string]bool{}
	var look func(commands []*cli.Command)
	look = func(commands []*cli.Command) {
		for _, c := range commands {
			look(c.Subcommands)
			names, _ := argumentNames(c.UsageText)
			if len(names) == 0 && len(c.Subcommands) == 0 && c.Name != "bench" {
				t.Errorf("%s: no arguments in %q", c.Name, c.UsageText)
			}
			for _, name := range names {
				used[name] = true
				if placeholders[name] == nil && !slices.Contains(helpless, name) {
					t.Errorf("%s: %s is not known", c.Name, name)
				}
			}
		}
	}
	look(visible(newApp().Commands))
	for name := range placeholders {
		if !used[name] && name != "FILE" {
			t.Errorf("no command has an argument %s", name)
		}
	}
}

// TestCompleteIsHarmless: nothing is asked, nothing but candidates is printed, and
// names that would break a line are left out.
func TestCompleteIsHarmless(t *testing.T) {
	box := newBox(t)
	before, err := os.ReadFile(box)
	if err != nil {
		t.Fatal(err)
	}
	o := serpcrypt(t, "", "complete", "--", "key", "remove", box, "--key-slot", "").must(t, exitOK)
	if o.stdout != "0\tPBKDF2-sha1, 1000 iterations\n" || o.stderr != "" {
		t.Errorf("got %q, %q", o.stdout, o.stderr)
	}
	for _, words := range [][]string{nil, {""}, {"--", ""}, {"open", "--header"}, {"status", "a", "b", ""}, {"complete", "--", ""}, {"=", "=x"}, {"-", "--=", "-="}} {
		serpcrypt(t, "", append([]string{"complete", "--"}, words...)...).must(t, exitOK)
	}
	after, err := os.ReadFile(box)
	if err != nil || string(after) != string(before) {
		t.Errorf("the container has changed (%v)", err)
	}
}
