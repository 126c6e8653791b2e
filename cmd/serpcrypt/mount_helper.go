package main

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

// mountHelperName is what mount(8) starts to mount the type serpcrypt: a link to
// this program.
const mountHelperName = "mount.serpcrypt"

// The exit codes of mount(8), which hands on those of its helpers.
const (
	mountUsage       = 1
	mountInterrupted = 8
	mountFailed      = 32
)

// isMountHelper reports whether the program was started by that name.
func isMountHelper(args []string) bool {
	return len(args) > 0 && filepath.Base(args[0]) == mountHelperName
}

// runMountHelper does what mount(8) asks for and returns its exit code.
func runMountHelper(words []string) int {
	r, err := parseMount(words)
	var open []string
	if err == nil {
		open, err = r.openWords()
	}
	mounted := false
	if err == nil && !r.fake {
		mounted, err = r.isMounted()
	}
	switch {
	case err != nil:
		report(err)
		code, _ := explain(err)
		return mountCode(code)
	case mounted:
		notef("%s is already open at %s", r.container, r.mountPoint)
		return exitOK
	case r.fake:
		return exitOK
	}
	return mountCode(run(open))
}

// mountCode is what mount(8) says where the program would say code.
func mountCode(code int) int {
	switch {
	case code == exitOK:
		return exitOK
	case code == exitUsage:
		return mountUsage
	case code == exitSignal+int(syscall.SIGINT):
		return mountInterrupted
	}
	return mountFailed
}

// mountRequest is what mount(8) asks for.
type mountRequest struct {
	container  string
	mountPoint string
	options    []string
	fake       bool // only look whether the request makes sense
	verbose    bool
}

const (
	mountHelperUsage = "mount.serpcrypt CONTAINER MOUNTPOINT [-sfnv] [-o OPTIONS]"
	hintMountHelper  = "see man mount.serpcrypt"
)

// parseMount reads the command line of a mount helper, as mount(8) has it.
func parseMount(words []string) (*mountRequest, error) {
	r := &mountRequest{}
	var arguments []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "-o" && i+1 < len(words):
			i++
			r.options = append(r.options, splitMountOptions(words[i])...)
		case len(word) > 1 && word[0] == '-' && strings.Trim(word[1:], "sfnv") == "":
			r.fake = r.fake || strings.Contains(word, "f")
			r.verbose = r.verbose || strings.Contains(word, "v")
		case strings.HasPrefix(word, "-"):
			return nil, failf(exitUsage, hintMountHelper, "%s is not understood", word)
		default:
			arguments = append(arguments, word)
		}
	}
	if len(arguments) != 2 || slices.Contains(arguments, "") {
		return nil, failf(exitUsage, hintMountHelper, "usage: %s", mountHelperUsage)
	}
	r.container, r.mountPoint = arguments[0], arguments[1]
	return r, nil
}

// splitMountOptions splits at commas, but for those in a value in double quotes, as
// mount(8) does.
func splitMountOptions(text string) []string {
	quoted := false
	return strings.FieldsFunc(text, func(c rune) bool {
		if c == '"' {
			quoted = !quoted
		}
		return c == ',' && !quoted
	})
}

// mountFlags are the flags of open that are options of mount, too.
func mountFlags() []cli.Flag {
	flags := openCommand().Flags
	hideDefaults(flags)
	return slices.DeleteFunc(flags, func(f cli.Flag) bool {
		return slices.Contains([]string{"readonly", "options", "foreground", "test-passphrase"}, f.Names()[0])
	})
}

// mountNames are other names of such flags: as crypttab, fstab and programs like
// this one have them.
var mountNames = map[string]string{"keyfile": "key-file", "allow_other": "allow-other"}

func findMountFlag(name string) cli.Flag {
	if other := mountNames[name]; other != "" {
		name = other
	}
	for _, f := range mountFlags() {
		if f.Names()[0] == name {
			return f
		}
	}
	return nil
}

// openWords is the request as a command line.
func (r *mountRequest) openWords() ([]string, error) {
	words := []string{"serpcrypt", "open"}
	if r.verbose {
		words = append(words, "--debug")
	}
	var inner []string
	for _, option := range r.options {
		name, value, hasValue := strings.Cut(option, "=")
		flag := findMountFlag(name)
		switch {
		case name == "remount":
			return nil, failf(exitUsage, "umount it, then mount it anew", "a container cannot be remounted")
		case name == "ro":
			words = append(words, "--readonly")
		case isForMount(name):
		case flag == nil:
			inner = append(inner, option)
		case takesValue(flag) && !hasValue:
			return nil, failf(exitUsage, hintMountHelper, "option %s needs a value", name)
		case takesValue(flag):
			words = append(words, "--"+flag.Names()[0]+"="+unquote(value))
		case hasValue:
			return nil, failf(exitUsage, hintMountHelper, "option %s takes no value", name)
		default:
			words = append(words, "--"+flag.Names()[0])
		}
	}
	if len(inner) > 0 {
		words = append(words, "-o", strings.Join(inner, ","))
	}
	return append(words, "--", r.container, r.mountPoint), nil
}

// unquote takes away the quotes around a value.
func unquote(value string) string {
	if inner, ok := strings.CutPrefix(value, `"`); ok && strings.HasSuffix(inner, `"`) {
		return strings.TrimSuffix(inner, `"`)
	}
	return value
}

// isForMount reports whether an option is for mount(8) or systemd alone, and says
// nothing to a file system.
func isForMount(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), "x-") || slices.Contains([]string{
		"defaults", "rw", "auto", "noauto", "nofail", "_netdev", "comment",
		"user", "nouser", "users", "nousers", "owner", "noowner", "group", "nogroup",
	}, name)
}

// isMounted reports whether the container is open there already, as "mount -a" may
// find it. One that has just been unmounted is not, and may need a moment to end.
func (r *mountRequest) isMounted() (bool, error) {
	container, err := resolvePath(r.container)
	if err != nil {
		return false, nil // open says what is wrong
	}
	mountPoint, err := resolvePath(r.mountPoint)
	if err != nil {
		return false, nil
	}
	found, err := findOpen()
	if err != nil {
		return false, err
	}
	for _, f := range found {
		if !f.alive || f.state.Container != container {
			continue
		}
		m, err := f.entry.outerMount(f.state)
		if err != nil || m != nil {
			return m != nil && f.state.MountPoint == mountPoint, err
		}
		if err := f.giveTimeToEnd(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// giveTimeToEnd waits for the server of a container that is unmounted, unless it
// still has to wait for others.
func (f openContainer) giveTimeToEnd() error {
	const longest = 5 * time.Second
	life, err := f.entry.watch()
	if err != nil {
		return err
	}
	defer life.close()
	for start := time.Now(); life.alive() && time.Since(start) < longest; {
		time.Sleep(firstPause)
	}
	return nil
}
