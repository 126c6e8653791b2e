package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"serpcrypt/internal/secret"
)

// Hints and questions that more than one command uses.
const (
	hintNoSpace      = "free some space, or choose another place"
	hintMemory       = "close other programs, or use a machine with more memory"
	hintPermission   = "look at the permissions, or try again as root"
	hintBusy         = "serpcrypt status shows what is open"
	hintTryAgain     = "nothing has been written: try again"
	hintForce        = "--force overwrites it"
	hintNoPassphrase = "give the passphrase on a terminal, as the first line of standard input, or by --key-file"
	hintNewline      = "the key file ends in a newline, and without it it would fit: it was perhaps made by an editor or by echo without -n"
	hintNotASCII     = "the passphrase is not all ASCII: another keyboard or system may make other bytes of the same letters (Unicode has é as one character and as two), and only these bytes will open it"
	hintOtherBytes   = "the passphrase is not all ASCII: perhaps it was made on a system that makes other bytes of the same letters (Unicode NFC, NFD)"
	hintDamagedSlot  = "if it is the right one, its key slot may be damaged: serpcrypt verify tells which are certainly"
	hintMismatch     = "this processor or its memory is at fault, or this program: trust neither with data"
	confirmWord      = "YES"
)

// screen is how the program talks to the person: results on out, everything
// else on err.
var screen = struct {
	out, err io.Writer
	lost     error // why a part of the results did not get to out
	quiet    bool  // -q: no questions, progress or notes
	debug    bool
}{out: os.Stdout, err: os.Stderr}

// infof prints a line about what was done, on standard output.
func infof(format string, a ...any) {
	if _, err := fmt.Fprintf(screen.out, format+"\n", a...); err != nil && screen.lost == nil {
		screen.lost = err
	}
}

// notef prints a line that is no result, on standard error, unless -q is set.
func notef(format string, a ...any) {
	if !screen.quiet {
		fmt.Fprintf(screen.err, "serpcrypt: "+format+"\n", a...)
	}
}

func warnf(format string, a ...any) {
	fmt.Fprintf(screen.err, "serpcrypt: warning: "+format+"\n", a...)
}
func errorf(format string, a ...any) { fmt.Fprintf(screen.err, "serpcrypt: error: "+format+"\n", a...) }
func hintf(format string, a ...any)  { fmt.Fprintf(screen.err, "serpcrypt: hint: "+format+"\n", a...) }

// debugf prints what --debug asks for. It must never be given a secret.
func debugf(format string, a ...any) {
	if screen.debug {
		fmt.Fprintf(screen.err, "serpcrypt: debug: "+format+"\n", a...)
	}
}

// printJSON writes v as the one document of --json.
func printJSON(v any) error {
	e := json.NewEncoder(screen.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// report prints err and the hint that goes with it.
func report(err error) {
	errorf("%s", errorText(err))
	if _, hint := explain(err); hint != "" {
		hintf("%s", hint)
	}
}

// errorText is what a person reads of err: without the names of our packages,
// which say nothing to anybody but a programmer.
func errorText(err error) string {
	var interrupted *signalError
	if errors.As(err, &interrupted) {
		return interrupted.Error()
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	return packagePrefix.ReplaceAllString(text, "$1")
}

// packagePrefix stands where an error's text may begin: "at byte 0 of the
// volume: ..." and a file called volume keep the word.
var packagePrefix = regexp.MustCompile(`(^|[:;] |\()(?:(?:volume|luks|luks1|luks2|keyslot|modes|serpent|sha1|kdf|hashes|whirlpool|af|secret|bench|fusefs|loopdev|procs|mounts|newfile|fsprobe): )+`)

// shellQuote writes a word so that a shell reads it as it is.
func shellQuote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

var swapWarning sync.Once

// warnOfSwap says so, once, if keys are in memory that may be swapped out.
func warnOfSwap() {
	if err := secret.LockError(); err != nil {
		swapWarning.Do(func() {
			warnf("%s: raise the limit (ulimit -l), or use encrypted swap space", errorText(err))
		})
	}
}

// confirm asks for the word YES before something is destroyed; warning says
// what. With -q nothing is asked; with no terminal to ask on the answer is no.
func confirm(ctx context.Context, warning string) error {
	if screen.quiet {
		return nil
	}
	refused := func(why string) error {
		return failf(exitBusy, "-q answers yes to such questions", "%s: %s", warning, why)
	}
	if !isTerminal(os.Stdin) {
		return refused("not done without a confirmation")
	}
	t, err := openTerminal()
	if err != nil {
		return err
	}
	defer t.close()
	answer, err := t.readLine(ctx, fmt.Sprintf("%s.\nType %s to go on: ", warning, confirmWord))
	if err != nil {
		return err
	}
	if answer != confirmWord {
		return refused("not confirmed")
	}
	return nil
}

// printable keeps what a foreign header says from reaching the terminal as a
// command.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
