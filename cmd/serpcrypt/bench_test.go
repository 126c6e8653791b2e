package main

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

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
