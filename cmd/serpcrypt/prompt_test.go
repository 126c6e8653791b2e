package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// session is a run of the program on a terminal of its own.
type session struct {
	t      *testing.T
	person *os.File // the person's side of the terminal
	tty    *os.File
	before unix.Termios
	cmd    *exec.Cmd
	seen   string // all that the terminal has shown
}

// startOnTerminal runs the program with a terminal for everything that cmd
// does not set otherwise.
func startOnTerminal(t *testing.T, cmd *exec.Cmd) *session {
	t.Helper()
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close(); tty.Close() })
	if cmd.Stdin == nil {
		cmd.Stdin = tty
	}
	cmd.Stdout, cmd.Stderr = tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	s := &session{t: t, person: person, tty: tty, before: termios(t, tty), cmd: cmd}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// answer waits for a question and types.
func (s *session) answer(question, typed string) {
	s.t.Helper()
	s.seen += expect(s.t, s.person, question)
	if _, err := s.person.WriteString(typed); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the end of the program and checks how it leaves the terminal.
func (s *session) end(code int, says string) {
	s.t.Helper()
	got := exitCode(s.t, s.cmd.Wait())
	if _, err := s.tty.WriteString("END"); err != nil {
		s.t.Fatal(err)
	}
	s.seen += expect(s.t, s.person, "END")
	if got != code || !strings.Contains(s.seen, says) {
		s.t.Errorf("exit code %d, want %d, and %q in\n%s", got, code, says, s.seen)
	}
	if after := termios(s.t, s.tty); after != s.before {
		s.t.Errorf("the terminal is left as %+v, was %+v", after, s.before)
	}
}

func TestCreateOnTerminal(t *testing.T) {
	box := filepath.Join(t.TempDir(), "box")
	create := func() *session {
		return startOnTerminal(t, exec.Command("serpcrypt", "create", "--size", "3M", "--pbkdf-force-iterations", "1000", box))
	}
	s := create()
	s.answer("New passphrase for "+box+": ", "one\r")
	s.answer("The same again: ", "two\r")
	s.answer("They differ. Once more.\r\nNew passphrase for "+box+": ", testPassphrase+"\r")
	s.answer("The same again: ", testPassphrase+"\r")
	s.end(0, "Made "+box)
	if strings.Contains(s.seen, testPassphrase) || strings.Contains(s.seen, "one\r\n") {
		t.Errorf("a passphrase is on the screen: %q", s.seen)
	}
	serpcrypt(t, testPassphrase, "verify", box).must(t, 0)

	if err := os.Remove(box); err != nil {
		t.Fatal(err)
	}
	s = create()
	for range 3 {
		s.answer("New passphrase for "+box+": ", "one\r")
		s.answer("The same again: ", "two\r")
	}
	s.end(exitPermission, "error: the passphrases do not match")

	s = create()
	s.answer(": ", "half a pass\x03")
	s.end(130, "error: interrupted by SIGINT")
	s = create()
	s.answer(": ", "one\r")
	s.answer("again: ", "\x03")
	s.end(130, "error: interrupted by SIGINT")
	if exists(box) {
		t.Error("a container was left behind")
	}
}

func TestUnlockOnTerminal(t *testing.T) {
	box := newBox(t)
	verify := func(options ...string) *session {
		return startOnTerminal(t, exec.Command("serpcrypt", append([]string{"verify", box}, options...)...))
	}
	ask := "Passphrase for " + box + ": "
	s := verify()
	s.answer(ask, "wrong\r")
	s.answer(ask, "wrong as well\r")
	s.answer(ask, testPassphrase+"\r")
	s.end(0, "slot 0 opens with the passphrase")
	if strings.Count(s.seen, "error: no key slot opens with this passphrase") != 2 || strings.Contains(s.seen, "wrong") {
		t.Errorf("the terminal shows %q", s.seen)
	}

	s = verify("--tries", "2")
	s.answer(ask, "wrong\r")
	s.answer(ask, "wrong\r")
	s.end(exitPermission, "error: no key slot opens")

	s = verify("--timeout", "1")
	s.answer(ask, "too slow")
	s.end(exitUsage, "error: time is up")

	s = verify()
	s.answer(ask, "\x04")
	s.end(exitUsage, "error: no passphrase was typed")

	s = verify()
	s.answer(ask, "")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.end(143, "error: interrupted by SIGTERM")
}

// TestSlowSlotOnTerminal: the person is told, and can go without waiting.
func TestSlowSlotOnTerminal(t *testing.T) {
	for _, hash := range []string{"sha1", "sha512"} {
		box := newBox(t, "--type", "luks1", "--hash", hash)
		verify := func(options ...string) *session {
			s := startOnTerminal(t, exec.Command("serpcrypt", append([]string{"verify", box}, options...)...))
			s.answer("Passphrase for "+box+": ", testPassphrase+"\r")
			return s
		}
		poke(t, box, 212, "\xff\xff\xff\xff") // iterations of key slot 0 (LUKS1 On-Disk Format 1.2.3, table 2)
		s := verify()
		s.answer(" to open here\r\n", "\x03")
		s.end(130, "error: interrupted by SIGINT")
		verify("--timeout", "1").end(exitUsage, "error: time is up: the key is not derived yet")

		// Nor does one that is slow hold up another.
		poke(t, box, 256, "\x00\xac\x71\xf3\x00\x00\x03\xe8") // key slot 1: enabled, 1000 iterations
		s = verify()
		s.answer(" to open here\r\n", "\x03")
		s.end(130, "error: interrupted by SIGINT")
		poke(t, box, 212, "\x00\x00\x03\xe8")
		poke(t, box, 260, "\xff\xff\xff\xff")
		s = verify()
		s.end(0, "slot 0 opens with the passphrase")
		if strings.Contains(s.seen, "takes about") {
			t.Errorf("the terminal shows %q", s.seen)
		}
	}
}

// TestImportAsksOnTerminal: the data come by standard input, so the passphrase
// has to come from elsewhere.
func TestImportAsksOnTerminal(t *testing.T) {
	box := newBox(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.WriteString("plaintext by a pipe")
	w.Close()
	cmd := exec.Command("serpcrypt", "import", "-", box)
	cmd.Stdin = r
	s := startOnTerminal(t, cmd)
	s.answer("Passphrase for "+box+": ", testPassphrase+"\r")
	s.end(0, "(19 bytes)")
	if o := serpcrypt(t, testPassphrase, "export", box, "-").must(t, 0); !strings.HasPrefix(o.stdout, "plaintext by a pipe\x00") {
		t.Errorf("the volume begins with %q", o.stdout[:40])
	}

	// Without a terminal there is nobody to ask.
	cmd = exec.Command("serpcrypt", "import", "-", box)
	cmd.Stdin = strings.NewReader("more plaintext")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if o := runCommand(t, cmd); o.code != exitUsage || !strings.Contains(o.stderr, "error: no terminal to ask on") {
		t.Errorf("exit code %d\n%s", o.code, o.stderr)
	}
}

// TestExportKeepsOffTerminal: plaintext could be commands to a terminal.
func TestExportKeepsOffTerminal(t *testing.T) {
	s := startOnTerminal(t, exec.Command("serpcrypt", "export", newBox(t), "-"))
	s.end(exitUsage, "error: the plaintext does not go to a terminal")
}

func TestConfirmOnTerminal(t *testing.T) {
	box := newBox(t)
	before := content(t, box)
	create := func() *session {
		return startOnTerminal(t, exec.Command("serpcrypt", "create", "--force", "--pbkdf-force-iterations", "1000", box))
	}
	const question = "Type YES to go on: "
	for _, no := range []string{"yes\n", "\n", "YES!\n", "\x04"} {
		s := create()
		s.answer(question, no)
		s.end(exitBusy, box+" holds LUKS2, which will be lost: not confirmed")
	}
	s := create()
	s.answer(question, "\x03")
	s.end(130, "error: interrupted by SIGINT")
	if content(t, box) != before {
		t.Fatal("the container has changed without a confirmation")
	}

	s = create()
	s.answer(question, "YES\n")
	s.answer(": ", "new\r")
	s.answer("again: ", "new\r")
	s.end(0, "Made "+box)
	serpcrypt(t, "new", "verify", box).must(t, 0)
}
