package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"

	"serpcrypt/internal/bench"
)

// On a terminal a line tells how far the work is, and Ctrl-C ends it.
func TestBenchOnTerminal(t *testing.T) {
	cmd := exec.Command("serpcrypt", "bench", "--time", "100ms")
	person, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	expect(t, person, "s left")
	if _, err := person.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(person) // ends with an error when the program does
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("ended with %v, want exit code 130; the terminal shows %q", err, rest)
	}
	if !strings.Contains(string(rest), "serpcrypt: error: interrupted") || strings.Contains(string(rest), "size ") {
		t.Errorf("the terminal shows %q", rest)
	}
}

// On a terminal there are bars, of characters that its locale has, and no line is
// wider than it.
func TestBenchBars(t *testing.T) {
	for _, c := range []struct {
		env           []string
		columns       uint16
		bar, otherBar string
	}{
		{[]string{"LC_ALL=C.UTF-8", "TERM=xterm"}, 80, "█", "#"},
		{[]string{"LC_ALL=", "LC_CTYPE=", "LANG=de_DE.utf8", "TERM=xterm", "NO_COLOR=1"}, 40, "█", "#"},
		{[]string{"LC_ALL=C", "LANG=C.UTF-8", "TERM=xterm"}, 200, "#", "█"},
		{[]string{"LC_ALL=C.UTF-8", "TERM=dumb"}, 80, "#", "█"},
		{[]string{"LC_ALL=C.UTF-8", "TERM=xterm"}, 0, "█", "#"}, // a terminal that does not tell
	} {
		t.Run(strings.Join(c.env, " "), func(t *testing.T) {
			cmd := exec.Command("serpcrypt", "bench", "sectors", "-q", "--kernel", "generic", "--time", "1ns")
			cmd.Env = append(os.Environ(), c.env...)
			person, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: c.columns})
			if err != nil {
				t.Fatal(err)
			}
			defer person.Close()
			shown, _ := io.ReadAll(person) // ends with an error when the program does
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v, the terminal shows %q", err, shown)
			}
			bars := strings.Count(string(shown), c.bar)
			if bars < 50 || strings.Contains(string(shown), c.otherBar) || strings.Contains(string(shown), "\x1b") {
				t.Errorf("%d times %s: the terminal shows\n%s", bars, c.bar, shown)
			}
			columns := int(c.columns)
			if columns == 0 {
				columns = 80
			}
			for line := range strings.Lines(string(shown)) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\r\n")); n > columns {
					t.Errorf("a line of %d characters: %s", n, line)
				}
			}
			if words := strings.Join(strings.Fields(string(shown)), " "); !strings.Contains(words, "Sectors of 4096 bytes are decrypted at ") {
				t.Errorf("no sentence in the end:\n%s", shown)
			}
		})
	}
}

func TestBenchErrorCodes(t *testing.T) {
	code, hint := explain(benchError(&bench.MismatchError{What: "serpent"}))
	if code != exitBad || hint != hintMismatch {
		t.Errorf("wrong output: code %d, hint %q", code, hint)
	}
	code, hint = explain(benchError(&bench.UnknownSuiteError{Name: "aes"}))
	if code != exitUsage || hint != "see serpcrypt bench --help" {
		t.Errorf("unknown suite: code %d, hint %q", code, hint)
	}
}
