package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func testApp() *cli.App {
	app := newApp()
	app.Flags = []cli.Flag{
		&cli.StringFlag{Name: "kernel"},
		&cli.BoolFlag{Name: "batch-mode", Aliases: []string{"q"}},
	}
	app.Commands = []*cli.Command{
		{Name: "make", Flags: []cli.Flag{
			&cli.StringFlag{Name: "size", Aliases: []string{"s"}},
			&cli.BoolFlag{Name: "force"},
		}},
		{Name: "key", Subcommands: []*cli.Command{{Name: "add", Flags: []cli.Flag{&cli.IntFlag{Name: "slot"}}}}},
	}
	return app
}

func TestReorder(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"p", "p"},
		{"p make", "p make"},
		{"p make a", "p make -- a"},
		{"p make a --size 5", "p make --size 5 -- a"},
		{"p make a --size=5 --force b -q", "p -q make --size=5 --force -- a b"},
		{"p make --force a", "p make --force -- a"},
		{"p --kernel x make a", "p --kernel x make -- a"},
		{"p make a --kernel x", "p --kernel x make -- a"},
		{"p --size 5 make a", "p make --size 5 -- a"},
		{"p make -s make make", "p make -s make -- make"},
		{"p make -- --size 5", "p make -- --size 5"},
		{"p make a -- -q", "p make -- a -q"},
		{"p make -", "p make -- -"},
		{"p make a -h", "p make -h"},
		{"p -h", "p -h"},
		{"p -h make", "p make -h"},
		{"p help", "p --help"},
		{"p help make", "p make --help"},
		{"p make help", "p make -- help"},
		{"p --version", "p --version"},
		{"p make --size --force a", "p make --size --force -- a"},
		{"p key add c --slot 3", "p key add --slot 3 -- c"},
		{"p key --slot 3 add c", "p key add --slot 3 -- c"},
		{"p --slot 3 key add add", "p key add --slot 3 -- add"},
		{"p key", "p key"},
		{"p key -h", "p key -h"},
		{"p key add -h", "p key add -h"},
	} {
		got, err := reorder(testApp(), strings.Fields(test.in))
		if err != nil || !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("reorder(%s) = %q, %v, want %s", test.in, got, err, test.want)
		}
	}
}

func TestReorderErrors(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"p --foo", "unknown flag --foo"},
		{"p foo", `unknown command "foo"`},
		{"p make --foo=1", "make has no flag --foo"},
		{"p make -x a", "make has no flag -x"},
		{"p make --size", "--size needs a value"},
		{"p -- make", "a command is missing"},
		{"p key make", `unknown command "key make"`},
		{"p key --slot 3 c", "key has no flag --slot"},
	} {
		_, err := reorder(testApp(), strings.Fields(test.in))
		if err == nil || err.Error() != test.want {
			t.Errorf("reorder(%s): error %v, want %s", test.in, err, test.want)
			continue
		}
		if code, hint := explain(err); code != exitUsage || !strings.Contains(hint, "--help") {
			t.Errorf("reorder(%s): code %d, hint %q", test.in, code, hint)
		}
	}
}
