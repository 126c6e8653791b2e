package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/secret"
)

const (
	maxPassphrase = 512           // bytes, as cryptsetup has it
	fewBytes      = 8             // that nobody needs long to try all of, if they are letters
	maxKeyFile    = 8 << 20       // bytes, likewise
	maxTimeout    = math.MaxInt32 // seconds, 68 years
)

var (
	errPassphraseTooLong = usagef("the passphrase is longer than %d bytes", maxPassphrase)
	errMismatch          = failf(exitPermission, "", "the passphrases do not match")
	errTimeUp            = usagef("time is up: the key is not derived yet")
	errStdinTaken        = usagef("standard input cannot bring both data and key")
)

// passphraseFlags choose where a passphrase comes from.
func passphraseFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "key-file", Aliases: []string{"d"}, Usage: "take the passphrase from `FILE`, every byte of it (- is standard input)"},
		&cli.Int64Flag{Name: "keyfile-offset", Usage: "skip the first `BYTES` of the key file"},
		&cli.Int64Flag{Name: "keyfile-size", Aliases: []string{"l"}, DefaultText: "all", Usage: "read exactly `BYTES` of the key file"},
		&cli.IntFlag{Name: "tries", Aliases: []string{"T"}, Value: 3, Usage: "ask at most `N` times"},
		&cli.IntFlag{Name: "timeout", Aliases: []string{"t"}, Usage: "wait at most `SECONDS` for the passphrase, and as long for the key derived from it", DefaultText: "for ever"},
	}
}

// newKeyFlags choose where the new passphrase comes from, for commands that
// need the old one as well.
func newKeyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "new-keyfile", Usage: "take the new passphrase from `FILE`, every byte of it (- is standard input)"},
		&cli.Int64Flag{Name: "new-keyfile-offset", Usage: "skip the first `BYTES` of the new key file"},
		&cli.Int64Flag{Name: "new-keyfile-size", DefaultText: "all", Usage: "read exactly `BYTES` of the new key file"},
	}
}

// keyFileFlags are the names of the flags that tell of a key file.
type keyFileFlags struct{ file, offset, size string }

var (
	oldKeyFile = keyFileFlags{"key-file", "keyfile-offset", "keyfile-size"}
	newKeyFile = keyFileFlags{"new-keyfile", "new-keyfile-offset", "new-keyfile-size"}
)

// keyRequest says for what a passphrase is needed.
type keyRequest struct {
	container  string       // how the person calls it
	isNew      bool         // asked for twice
	stdinTaken bool         // standard input brings data: ask on the terminal
	flags      keyFileFlags // oldKeyFile if empty
	anySlot    bool         // --key-slot is about something else
}

func (r keyRequest) keyFile() keyFileFlags {
	if r.flags == (keyFileFlags{}) {
		return oldKeyFile
	}
	return r.flags
}

// passphrase is what a person or a key file gave. Close wipes it.
type passphrase struct {
	*secret.Buffer
	typed   bool // on a terminal: it makes sense to ask again
	keyFile bool
}

// isASCII reports whether every keyboard and system makes the same bytes of it.
func (p *passphrase) isASCII() bool {
	for _, b := range p.Bytes() {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// checkKeyFlags finds what is wrong with the flags before anything is done.
func checkKeyFlags(c *cli.Context, r keyRequest) error {
	flags := r.keyFile()
	file, size, offset := c.String(flags.file), c.Int64(flags.size), c.Int64(flags.offset)
	switch {
	case c.IsSet(flags.file) && file == "":
		return usagef("--%s is empty", flags.file)
	case file == "" && (c.IsSet(flags.size) || c.IsSet(flags.offset)):
		return usagef("--%s and --%s need --%s", flags.size, flags.offset, flags.file)
	case c.IsSet(flags.size) && (size < 1 || size > maxKeyFile):
		return usagef("--%s must lie between 1 and %d bytes", flags.size, maxKeyFile)
	case offset < 0:
		return usagef("--%s must not be negative", flags.offset)
	case c.Int("tries") < 1:
		return usagef("--tries must be at least 1")
	case c.Int("timeout") < 0:
		return usagef("--timeout must not be negative")
	case c.Int("timeout") > maxTimeout:
		return usagef("--timeout must be at most %d seconds", maxTimeout)
	case file == stdio && r.stdinTaken:
		return errStdinTaken
	}
	return nil
}

// timeout returns what --timeout says, or 0.
func timeout(c *cli.Context) time.Duration {
	return time.Duration(c.Int("timeout")) * time.Second
}

// inTime derives a key for no longer than d, unless that is 0.
func inTime(ctx context.Context, d time.Duration, derive func(context.Context) error) error {
	if d == 0 {
		return derive(ctx)
	}
	ctx, end := context.WithTimeoutCause(ctx, d, errTimeUp)
	defer end()
	err := derive(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

// readPassphrase reads the key file if there is one, else asks on the
// terminal if standard input is one, else takes its first line. checkKeyFlags
// has found nothing wrong.
func readPassphrase(c *cli.Context, r keyRequest) (*passphrase, error) {
	p, err := findPassphrase(c, r)
	if err == nil && r.isNew && !screen.quiet {
		p.warnOfNew()
	}
	return p, err
}

// warnOfNew says what is unwise about a passphrase that is to be used from now on.
func (p *passphrase) warnOfNew() {
	switch {
	case p.Len() == 0:
		warnf("the passphrase is empty: everybody can open the container")
	case p.Len() < fewBytes:
		warnf("a passphrase of fewer than %d bytes will be guessed", fewBytes)
	}
	if !p.keyFile && !p.isASCII() {
		hintf("%s", hintNotASCII)
	}
}

func findPassphrase(c *cli.Context, r keyRequest) (*passphrase, error) {
	ctx := c.Context
	var deadline time.Time
	if d := timeout(c); d > 0 {
		deadline = time.Now().Add(d)
	}
	flags := r.keyFile()
	if path := c.String(flags.file); path != "" {
		b, err := readKeyFile(ctx, path, c.Int64(flags.offset), c.Int64(flags.size))
		if err != nil {
			return nil, err
		}
		return &passphrase{Buffer: b, keyFile: true}, nil
	}
	if !r.stdinTaken && !isTerminal(os.Stdin) {
		b, err := readFirstLine(&interruptible{ctx: ctx, file: os.Stdin, deadline: deadline})
		if err != nil {
			return nil, err
		}
		return &passphrase{Buffer: b}, nil
	}
	t, err := openTerminal()
	if err != nil {
		return nil, err
	}
	defer t.close()
	b, err := askPassphrase(ctx, t, r, c.Int("tries"), deadline)
	if err != nil {
		return nil, err
	}
	return &passphrase{Buffer: b, typed: true}, nil
}

// askPassphrase asks once, or twice for a new passphrase until both agree.
func askPassphrase(ctx context.Context, t *terminal, r keyRequest, tries int, deadline time.Time) (*secret.Buffer, error) {
	if !r.isNew {
		return t.readSecret(ctx, fmt.Sprintf("Passphrase for %s: ", r.container), deadline)
	}
	for try := 1; ; try++ {
		first, err := t.readSecret(ctx, fmt.Sprintf("New passphrase for %s: ", r.container), deadline)
		if err != nil {
			return nil, err
		}
		second, err := t.readSecret(ctx, "The same again: ", deadline)
		if err != nil {
			first.Close()
			return nil, err
		}
		same := bytes.Equal(first.Bytes(), second.Bytes())
		second.Close()
		if same {
			return first, nil
		}
		first.Close()
		if try >= tries {
			return nil, errMismatch
		}
		fmt.Fprintln(t.out, "They differ. Once more.")
	}
}

// readFirstLine reads up to the first newline and nothing beyond it.
func readFirstLine(r *interruptible) (*secret.Buffer, error) {
	line, err := secret.New(maxPassphrase)
	if err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		b, err := r.readByte()
		switch {
		case errors.Is(err, io.EOF) && n == 0:
			err = failf(exitUsage, hintNoPassphrase, "no passphrase on standard input")
		case errors.Is(err, io.EOF), err == nil && b == '\n':
			line.Truncate(n)
			return line, nil
		case err == nil && n == maxPassphrase:
			err = errPassphraseTooLong
		}
		if err != nil {
			line.Close()
			return nil, err
		}
		line.Bytes()[n] = b
	}
}
