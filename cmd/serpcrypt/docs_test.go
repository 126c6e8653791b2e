package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/urfave/cli/v2"

	"serpcrypt/internal/skip"
)

// notRun has the commands of the documents that TestDocs does not run, as they
// stand there, and why.
var notRun = map[string]string{
	"make test":                    isThisTest,
	"make check":                   isThisTest,
	"make test-short":              "runs tests for minutes, which make test has run",
	"make test-i386":               emulates,
	"make test-dmcrypt":            emulates,
	"make test-packages":           "makes a chroot and boots it, for minutes",
	"cryptsetup open box.luks box": needsDMCrypt,
	"mount /dev/mapper/box /mnt":   needsDMCrypt,
	"umount /mnt":                  needsDMCrypt,
	"cryptsetup close box":         needsDMCrypt,
	"cryptsetup luksFormat --cipher serpent-xts-plain64 --key-size 512 theirs.luks": needsDMCrypt,

	"scripts/fuzz.sh 1h ./volume/luks2":                                 "takes an hour; make test does it for a while",
	"SERPCRYPT_LONG=1 go test -timeout 0 -run TestKill ./cmd/serpcrypt": "takes hours; TestKill does it a few times",

	"grub-fstest -C box.luks ls '(crypto0)/'": "asks for the passphrase in a way of its own, and needs the packages of a boot loader",
}

const (
	isThisTest   = "is what runs this test"
	emulates     = "runs in an emulated machine, for minutes"
	needsDMCrypt = "needs the kernel's dm-crypt with Serpent; make test-dmcrypt does it in an emulated machine"
)

// docSettings are what the commands of a document need.
type docSettings struct {
	prepare      string   // shell commands before those of the document
	programs     []string // that have to be installed
	inRepository bool     // they run in a copy of the repository
	mounts       bool
	runBy        string // a script that runs them instead, where they can be
}

// onBusyMachine: qemu-img fails now and then where others keep the processor busy.
const onBusyMachine = `qemu-img() { for try in {1..20}; do command qemu-img "$@" && return; done; return 1; }` + "\n"

const passphraseFile = "printf '" + testPassphrase + "' >passphrase.txt\n"

var docSettingsOf = map[string]docSettings{
	"README.md": {
		prepare:      passphraseFile,
		programs:     []string{"make", "go", "cmp", "fusermount3", "qemu-img"},
		inRepository: true,
		mounts:       true,
	},
	"CONTRIBUTING.md": {
		programs:     []string{"make", "go"},
		inRepository: true,
	},
	"docs/boot.md": {runBy: "scripts/test-packages.sh"}, // in a machine that boots with systemd
	"docs/interop.md": {
		prepare:  passphraseFile + onBusyMachine + "serpcrypt create -q --size 32M --key-file passphrase.txt --pbkdf-force-iterations 1000 box.luks",
		programs: []string{"cryptsetup", "qemu-img"},
	},
}

// docQuestions ask for what is typed then.
var docQuestions = []struct {
	ask   *regexp.Regexp
	typed string
}{
	{regexp.MustCompile(`(?:[Pp]assphrase for [^\n]*|The same again): $`), testPassphrase},
	{regexp.MustCompile(`Type YES to go on: $`), "YES"},
}

// repository is its top, from this package's folder.
const repository = "../.."

// readDocs reads all documents of the repository.
func readDocs(t *testing.T) map[string]markdown {
	t.Helper()
	docs := map[string]markdown{}
	err := walkRepository(func(path string) error {
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(repository, path))
		docs[path] = parseMarkdown(path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(docs["README.md"].commands) == 0 || len(docs["docs/format.md"].spans) == 0 {
		t.Fatalf("the documents have not been found: %d", len(docs))
	}
	return docs
}

// walkRepository visits the files that belong to the repository.
func walkRepository(visit func(path string) error) error {
	return fs.WalkDir(os.DirFS(repository), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == ".git" || path == "bin" || path == "build" || path == "dist"):
			return fs.SkipDir
		case d.Type().IsRegular() && path != ".git": // as it is in a worktree
			return visit(path)
		}
		return nil
	})
}

// TestDocs runs every command that stands in a code block of a document: those of
// one document in one shell, in their order, in a folder of their own, on a
// terminal where somebody answers the questions.
func TestDocs(t *testing.T) {
	t.Parallel()
	left := maps.Clone(notRun)
	docs := readDocs(t)
	for _, doc := range slices.Sorted(maps.Keys(docs)) {
		var commands []docCommand
		for _, c := range docs[doc].commands {
			if _, listed := notRun[c.words()]; listed {
				delete(left, c.words())
			} else {
				commands = append(commands, c)
			}
		}
		if len(commands) == 0 {
			continue
		}
		if script := docSettingsOf[doc].runBy; script != "" {
			text, err := os.ReadFile(filepath.Join(repository, script))
			if err != nil || !strings.Contains(string(text), doc) {
				t.Errorf("%s does not run the commands of %s (%v)", script, doc, err)
			}
			continue
		}
		t.Run(doc, func(t *testing.T) {
			t.Parallel()
			runDoc(t, docSettingsOf[doc], commands)
		})
	}
	for command := range left {
		t.Errorf("%q is listed as not run, and is in no document", command)
	}
	for doc := range docSettingsOf {
		if len(docs[doc].commands) == 0 {
			t.Errorf("%s has settings, and no commands", doc)
		}
	}
}

// docsTime is how long the commands of a document may take.
const docsTime = 5 * time.Minute

func runDoc(t *testing.T, s docSettings, commands []docCommand) {
	programs := s.programs
	if s.mounts {
		needMounts(t)
		if os.Geteuid() != 0 {
			programs = append([]string{"fuse2fs"}, programs...)
		}
	}
	for _, program := range programs {
		if _, err := findProgram(program); err != nil {
			skip.Skip(t, err.Error())
		}
	}
	dir := openFolder(t)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	if s.inRepository {
		copyRepository(t, work)
	}
	const before = "+++ "
	script := "set -eo pipefail\n" + s.prepare + "\n"
	for _, c := range commands {
		script += "echo " + shellQuote(before+c.String()) + "\n" + c.text + "\n"
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), runtimeDirEnv+"="+filepath.Join(dir, "run"), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	shown, err := answering(t, cmd, docsTime)
	if err != nil {
		t.Errorf("%v, the last command is the one that failed:\n%s", err, shown)
	}
	if n := strings.Count(shown, before); n != len(commands) {
		t.Errorf("%d of %d commands ran", n, len(commands))
	}
}

func copyRepository(t *testing.T, to string) {
	t.Helper()
	err := walkRepository(func(path string) error {
		from := filepath.Join(repository, path)
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(path)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// answering runs a command on a terminal of its own, answers its questions and
// returns what the terminal has shown. When time is up, the command is killed.
func answering(t *testing.T, cmd *exec.Cmd, limit time.Duration) (shown string, err error) {
	t.Helper()
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	tty.Close()
	if err != nil {
		t.Fatal(err)
	}
	person.SetReadDeadline(time.Now().Add(limit))
	answered := 0
	for buf := make([]byte, 4096); ; {
		n, err := person.Read(buf)
		shown += string(buf[:n])
		for _, q := range docQuestions {
			if q.ask.MatchString(shown[answered:]) {
				answered = len(shown)
				fmt.Fprintf(person, "%s\r", q.typed)
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		if err != nil { // EIO: the last program on the terminal has ended
			return shown, errors.Join(ignoreEIO(err), cmd.Wait())
		}
	}
}

func ignoreEIO(err error) error {
	if errors.Is(err, syscall.EIO) {
		return nil
	}
	return err
}

// TestDocsNameWhatIsThere: what the text has as code is a command and a flag of
// the program, a target of the Makefile, or a path of the repository, if it looks
// like one.
func TestDocsNameWhatIsThere(t *testing.T) {
	targets, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, m := range readDocs(t) {
		for _, span := range m.spans {
			fault, applies := spanFault(span.text, string(targets))
			if fault != "" {
				t.Errorf("%v: %s", span, fault)
			}
			if applies {
				looked++
			}
		}
	}
	if looked < 100 {
		t.Errorf("only %d pieces of code have been looked at", looked)
	}
}

var pathLike = regexp.MustCompile(`^(?:cipher|cmd|docs|hash|internal|kdf|packaging|scripts|test|testdata|volume)/[\w./-]+$`)

// spanFault says what is wrong with a piece of code, and whether it is of a kind
// of which that can be told.
func spanFault(text, makefile string) (fault string, applies bool) {
	words := strings.Fields(text)
	app := newApp()
	switch {
	case len(words) == 0:
		return "", false
	case words[0] == "make" && len(words) > 1:
		if !regexp.MustCompile(`(?m)^(?:[a-z0-9-]+ )*` + regexp.QuoteMeta(words[1]) + `[ :]`).MatchString(makefile) {
			return "the Makefile has no such target", true
		}
		return "", true
	case pathLike.MatchString(words[0]):
		if _, err := os.Stat(filepath.Join(repository, words[0])); err != nil {
			return err.Error(), true
		}
		return "", true
	case words[0] == "serpcrypt" && len(words) > 1 && words[1] != "COMMAND":
	case findCommand(app.Commands, words[0]) != nil:
		words = append([]string{"serpcrypt"}, words...)
	case strings.HasPrefix(words[0], "--"):
		name, _, _ := strings.Cut(strings.TrimPrefix(words[0], "--"), "=")
		if !hasFlag(app.Flags, app.Commands, name) && name != "help" && name != "version" {
			return "no command has this flag", true
		}
		return "", true
	default:
		return "", false
	}
	if _, err := reorder(app, words); err != nil && !strings.HasSuffix(err.Error(), "needs a value") {
		return err.Error(), true
	}
	return "", true
}

// hasFlag reports whether one of flags, or of a command's, has the name.
func hasFlag(flags []cli.Flag, commands []*cli.Command, name string) bool {
	return slices.ContainsFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) ||
		slices.ContainsFunc(commands, func(c *cli.Command) bool { return hasFlag(c.Flags, c.Subcommands, name) })
}
