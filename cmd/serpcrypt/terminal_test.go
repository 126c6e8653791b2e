package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// openPty returns the person's side of a pseudo-terminal and the program's.
func openPty(t *testing.T) (person *os.File, program *terminal) {
	t.Helper()
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close(); tty.Close() })
	return person, &terminal{in: tty, out: tty}
}

func termios(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *state
}

// expect reads what the program shows until it ends in want.
func expect(t *testing.T, person *os.File, want string) string {
	t.Helper()
	var seen []byte
	for !bytes.HasSuffix(seen, []byte(want)) {
		if !readable(t, person, 10*time.Second) {
			t.Fatalf("the terminal shows %q, and no %q", seen, want)
		}
		buf := make([]byte, 256)
		n, err := person.Read(buf)
		if err != nil {
			t.Fatalf("the terminal shows %q, waiting for %q: %v", seen, want, err)
		}
		seen = append(seen, buf[:n]...)
	}
	return string(seen)
}

// readable waits until there is something to read. A terminal knows no deadlines: it
// may be read by the kernel's waiting alone.
func readable(t *testing.T, f *os.File, limit time.Duration) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for deadline := time.Now().Add(limit); ; {
		n, err := unix.Poll(fds, int(max(0, time.Until(deadline)).Milliseconds()))
		if err == nil {
			return n > 0
		}
		if err != unix.EINTR {
			t.Fatal(err)
		}
	}
}

func TestReadable(t *testing.T) {
	person, program := openPty(t)
	if readable(t, person, 10*time.Millisecond) {
		t.Error("there is something to read on a new terminal")
	}
	if _, err := io.WriteString(program.out, "x"); err != nil {
		t.Fatal(err)
	}
	if !readable(t, person, 10*time.Second) {
		t.Error("what is written cannot be read")
	}
}

func TestReadSecret(t *testing.T) {
	long := strings.Repeat("x", maxPassphrase)
	for _, test := range []struct {
		name, typed, want string
		err               string
	}{
		{name: "line", typed: "secret\r", want: "secret"},
		{name: "newline", typed: "secret\n", want: "secret"},
		{name: "empty", typed: "\r", want: ""},
		{name: "backspace", typed: "ab\x7fc\b\bde\r", want: "de"},
		{name: "backspace over UTF-8", typed: "aé€\x7f\x7fb\r", want: "ab"},
		{name: "backspace at the start", typed: "\x7f\x7fa\r", want: "a"},
		{name: "ctrl-U", typed: "wrong\x15right\r", want: "right"},
		{name: "ctrl-D ends", typed: "abc\x04", want: "abc"},
		{name: "ctrl-D on nothing", typed: "\x04", err: "no passphrase was typed"},
		{name: "ctrl-C", typed: "abc\x03", err: "interrupted by SIGINT"},
		{name: "longest", typed: long + "\r", want: long},
		{name: "too long", typed: long + "yz\r", err: "the passphrase is longer than 512 bytes"},
		{name: "too long, then ctrl-U", typed: long + "yz\x15a\r", want: "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			person, program := openPty(t)
			before := termios(t, program.in)
			type result struct {
				text string
				err  error
			}
			done := make(chan result)
			go func() {
				b, err := program.readSecret(context.Background(), "Say: ", time.Time{})
				if err != nil {
					done <- result{"", err}
					return
				}
				defer b.Close()
				done <- result{string(b.Bytes()), nil}
			}()
			expect(t, person, "Say: ")
			if _, err := io.WriteString(person, test.typed); err != nil {
				t.Fatal(err)
			}
			got := <-done
			if test.err == "" && (got.err != nil || got.text != test.want) {
				t.Errorf("got %q, %v, want %q", got.text, got.err, test.want)
			}
			if test.err != "" && (got.err == nil || got.err.Error() != test.err) {
				t.Errorf("got %q, error %v, want error %q", got.text, got.err, test.err)
			}
			if seen := expect(t, person, "\n"); seen != "\r\n" {
				t.Errorf("the terminal shows %q after the question", seen)
			}
			if after := termios(t, program.in); after != before {
				t.Errorf("the terminal is left as %+v, was %+v", after, before)
			}
		})
	}
}

func TestReadSecretSignal(t *testing.T) {
	person, program := openPty(t)
	before := termios(t, program.in)
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error)
	go func() {
		_, err := program.readSecret(ctx, "Say: ", time.Time{})
		done <- err
	}()
	expect(t, person, "Say: ")
	cancel(&signalError{syscall.SIGTERM})
	err := <-done
	if code, _ := explain(err); code != 128+15 {
		t.Errorf("error %v has code %d, want 143", err, code)
	}
	if after := termios(t, program.in); after != before {
		t.Errorf("the terminal is left as %+v, was %+v", after, before)
	}
}

// TestHangUp: when the terminal goes away, whatever is asked for on it is off.
func TestHangUp(t *testing.T) {
	for name, ask := range map[string]func(*terminal) error{
		"passphrase": func(tty *terminal) error {
			_, err := tty.readSecret(context.Background(), "Say: ", time.Time{})
			return err
		},
		"confirmation": func(tty *terminal) error {
			_, err := tty.readLine(context.Background(), "Say: ")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			person, program := openPty(t)
			done := make(chan error)
			go func() { done <- ask(program) }()
			expect(t, person, "Say: ")
			if err := person.Close(); err != nil {
				t.Fatal(err)
			}
			err := <-done
			if code, _ := explain(err); code != 128+1 {
				t.Errorf("error %v has code %d, want 129", err, code)
			}
		})
	}
}

func TestReadSecretDeadline(t *testing.T) {
	_, program := openPty(t)
	_, err := program.readSecret(context.Background(), "Say: ", time.Now().Add(time.Millisecond))
	if err == nil || !strings.Contains(err.Error(), "time is up") {
		t.Errorf("error %v, want that the time is up", err)
	}
}

func TestAskPassphraseTwice(t *testing.T) {
	for _, test := range []struct {
		name, typed, want string
		err               error
	}{
		{name: "same", typed: "a\ra\r", want: "a"},
		{name: "second try", typed: "a\rb\rc\rc\r", want: "c"},
		{name: "never", typed: "a\rb\rc\rd\r", err: errMismatch},
	} {
		t.Run(test.name, func(t *testing.T) {
			person, program := openPty(t)
			if _, err := io.WriteString(person, test.typed); err != nil {
				t.Fatal(err)
			}
			b, err := askPassphrase(context.Background(), program, keyRequest{container: "box", isNew: true}, 2, time.Time{})
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err == nil && string(b.Bytes()) != test.want {
				t.Errorf("got %q, want %q", b.Bytes(), test.want)
			}
		})
	}
}

func TestReadFirstLine(t *testing.T) {
	long := strings.Repeat("x", maxPassphrase)
	for _, test := range []struct{ name, in, want, rest, err string }{
		{name: "line", in: "secret\nmore\n", want: "secret", rest: "more\n"},
		{name: "no newline", in: "secret", want: "secret"},
		{name: "empty line", in: "\nrest", want: "", rest: "rest"},
		{name: "nothing", in: "", err: "no passphrase on standard input"},
		{name: "carriage return stays", in: "a\r\n", want: "a\r"},
		{name: "longest", in: long + "\n", want: long},
		{name: "too long", in: long + "y\n", err: "the passphrase is longer than 512 bytes", rest: "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			io.WriteString(w, test.in)
			w.Close()
			b, err := readFirstLine(&interruptible{ctx: context.Background(), file: r})
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Errorf("error %v, want %q", err, test.err)
				}
			} else if err != nil || string(b.Bytes()) != test.want {
				t.Errorf("got %v, %v, want %q", b, err, test.want)
			}
			if rest, _ := io.ReadAll(r); string(rest) != test.rest {
				t.Errorf("left in the pipe is %q, want %q", rest, test.rest)
			}
		})
	}
}

func TestReadKeyFile(t *testing.T) {
	file := func(content string) string {
		path := t.TempDir() + "/key"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	big := strings.Repeat("k", maxKeyFile)
	for _, test := range []struct {
		name, content string
		offset, size  int64
		want, err     string
	}{
		{name: "all bytes", content: "a\x00b\n", want: "a\x00b\n"},
		{name: "offset", content: "0123456789", offset: 4, want: "456789"},
		{name: "size", content: "0123456789", size: 3, want: "012"},
		{name: "both", content: "0123456789", offset: 4, size: 3, want: "456"},
		{name: "too short", content: "0123", offset: 2, size: 3, err: "it has only 2 bytes of the 3"},
		{name: "offset beyond", content: "0123", offset: 5, err: "it ends before the 5 bytes that are to be skipped"},
		{name: "offset at the end", content: "0123", offset: 4, err: "it is empty"},
		{name: "empty", content: "", err: "it is empty"},
		{name: "largest", content: big, want: big},
		{name: "too large", content: big + "k", err: "it is larger than"},
		{name: "part of one too large", content: big + "k", size: 5, want: "kkkkk"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, err := readKeyFile(context.Background(), file(test.content), test.offset, test.size)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || string(b.Bytes()) != test.want {
				t.Errorf("error %v, or not the bytes that were to be read", err)
			}
		})
	}
	if _, err := readKeyFile(context.Background(), t.TempDir(), 0, 0); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("directory as key file: error %v", err)
	}
	if _, err := readKeyFile(context.Background(), t.TempDir()+"/none", 0, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no key file: error %v", err)
	}
}
