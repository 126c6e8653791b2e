package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"serpcrypt/internal/secret"
)

// terminal is the one that the person sits at.
type terminal struct {
	in, out *os.File
	owned   bool
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// openTerminal opens the controlling terminal or, without one, takes standard
// input and standard error if they are terminals.
func openTerminal() (*terminal, error) {
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		return &terminal{in: tty, out: tty, owned: true}, nil
	}
	if isTerminal(os.Stdin) {
		return &terminal{in: os.Stdin, out: os.Stderr}, nil
	}
	return nil, failf(exitUsage, hintNoPassphrase, "no terminal to ask on")
}

func (t *terminal) close() {
	if t.owned {
		t.in.Close()
	}
}

// readByte tells a terminal that has gone away from the end of input.
func (t *terminal) readByte(r *interruptible) (byte, error) {
	b, err := r.readByte()
	if err != nil && !isTerminal(t.in) {
		err = &signalError{syscall.SIGHUP}
	}
	return b, err
}

// readLine asks for a line that may be seen.
func (t *terminal) readLine(ctx context.Context, question string) (string, error) {
	fmt.Fprint(t.out, question)
	r := &interruptible{ctx: ctx, file: t.in}
	var line []byte
	for {
		b, err := t.readByte(r)
		if errors.Is(err, io.EOF) || err == nil && b == '\n' {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
		line = append(line, b)
	}
}

// Control characters that readSecret knows.
const (
	ctrlC     = 0x03
	ctrlD     = 0x04
	backspace = 0x08
	ctrlU     = 0x15
	del       = 0x7f
)

// readSecret asks for a line without echo and keeps it in locked memory. The
// terminal is as before when it returns, whatever happens. A zero deadline is
// none.
func (t *terminal) readSecret(ctx context.Context, question string, deadline time.Time) (*secret.Buffer, error) {
	fd := int(t.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("turn off the terminal's echo: %w", err)
	}
	fmt.Fprint(t.out, question)
	defer fmt.Fprint(t.out, "\n")
	defer term.Restore(fd, before)

	r := &interruptible{ctx: ctx, file: t.in, deadline: deadline}
	line, err := secret.New(maxPassphrase)
	if err != nil {
		return nil, err
	}
	n, tooLong := 0, false
	for {
		b, err := t.readByte(r)
		if errors.Is(err, io.EOF) || err == nil && b == ctrlD && n == 0 {
			err = failf(exitUsage, hintNoPassphrase, "no passphrase was typed")
		} else if err == nil && b == ctrlC {
			err = &signalError{syscall.SIGINT}
		}
		if err != nil {
			line.Close()
			return nil, err
		}
		switch b {
		case '\r', '\n', ctrlD:
			line.Truncate(n)
			if tooLong {
				line.Close()
				return nil, errPassphraseTooLong
			}
			return line, nil
		case ctrlU:
			n, tooLong = 0, false
		case backspace, del:
			_, size := utf8.DecodeLastRune(line.Bytes()[:n])
			n -= size
		default:
			if n == maxPassphrase {
				// Read on to the end of the line: the rest must not
				// end up, visible, at the shell's prompt.
				tooLong = true
				break
			}
			line.Bytes()[n] = b
			n++
		}
	}
}

// interruptible reads a file, single bytes at a time if so asked, until its
// context or its time is over.
type interruptible struct {
	ctx      context.Context
	file     *os.File
	deadline time.Time // zero: none
}

// openWithoutWaiting opens a file for an interruptible. Opening a pipe that
// nobody writes to would otherwise wait, and no context ends that.
func openWithoutWaiting(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// pollEvery bounds how long a signal or a deadline goes unnoticed.
const pollEvery = 50 * time.Millisecond

// Read waits until there is something to read. It never takes more from the
// file than fits p, so that what follows is left to others.
func (r *interruptible) Read(p []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(r.file.Fd()), Events: unix.POLLIN}}
	for {
		if r.ctx.Err() != nil {
			return 0, context.Cause(r.ctx)
		}
		if !r.deadline.IsZero() && time.Now().After(r.deadline) {
			return 0, failf(exitUsage, "", "time is up: no passphrase came in")
		}
		ready, err := unix.Poll(fds, int(pollEvery.Milliseconds()))
		if err != nil && err != unix.EINTR {
			return 0, fmt.Errorf("wait for input: %w", err)
		}
		if ready > 0 {
			return r.file.Read(p)
		}
	}
}

func (r *interruptible) readByte() (byte, error) {
	var b [1]byte
	for {
		n, err := r.Read(b[:])
		if n == 1 {
			c := b[0]
			b[0] = 0
			return c, nil
		}
		if err != nil {
			return 0, err
		}
	}
}
