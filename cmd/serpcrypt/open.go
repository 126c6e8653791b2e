package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"serpcrypt/internal/fsprobe"
	"serpcrypt/internal/fusefs"
	"serpcrypt/volume"
)

const (
	hintRaw        = "open it with --raw to get at the plaintext as one file"
	hintAnotherDir = "choose another folder, or make one with mkdir"

	unfinishedText = "an import into it was not finished"
)

func openCommand() *cli.Command {
	return &cli.Command{
		Name:      "open",
		Usage:     "unlock a container and mount it",
		UsageText: "serpcrypt open [options] CONTAINER MOUNTPOINT",
		Description: `mkdir box
   serpcrypt open box.luks box`,
		Flags: append([]cli.Flag{
			headerFlag(),
			&cli.BoolFlag{Name: "raw", Usage: "do not mount a file system: MOUNTPOINT/volume is the plaintext"},
			&cli.BoolFlag{Name: "readonly", Aliases: []string{"r"}, Usage: "allow no changes"},
			&cli.GenericFlag{Name: "options", Aliases: []string{"o"}, Value: new(mountOptions), Usage: "pass mount `OPTIONS` on to the file system"},
			&cli.BoolFlag{Name: "allow-other", Usage: "let other users in; with --raw they may read and write all of it"},
			&cli.BoolFlag{Name: "allow-discards", Usage: "give back space that the file system no longer needs; that shows from outside how much is used"},
			&cli.DurationFlag{Name: "idle-timeout", DefaultText: "never", Usage: "close it when nobody has used it for a `DURATION` like 10m or 1h30m; sleep of the computer counts"},
			&cli.BoolFlag{Name: "foreground", Usage: "stay, and close the container on Ctrl-C"},
			&cli.BoolFlag{Name: "test-passphrase", Usage: "only try whether the passphrase opens CONTAINER"},
		}, unlockFlags()...),
		Action: runOpen,
	}
}

func runOpen(c *cli.Context) error {
	if err := refuseJSON(c); err != nil {
		return err
	}
	if err := checkUnlockFlags(c, keyRequest{}); err != nil {
		return err
	}
	if c.Bool("test-passphrase") {
		return tryPassphrase(c)
	}
	args, err := exactArgs(c, "CONTAINER", "MOUNTPOINT")
	if err != nil {
		return err
	}
	o, err := newOpening(c, args[0], args[1])
	if err != nil {
		return err
	}
	if err := removeDead(o.state); err != nil {
		return err
	}
	if err := checkMountPoint(o.state.MountPoint); err != nil {
		if whereOpen(o.state.Container) == o.state.MountPoint {
			return alreadyOpen(o.container, o.state.MountPoint)
		}
		return err
	}
	if err := fusefs.Available(); err != nil {
		return explainFuse(err)
	}
	return o.open(c)
}

// tryPassphrase changes nothing and needs no lock, so it works on an open
// container as well.
func tryPassphrase(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER")
	if err != nil {
		return err
	}
	file, err := peekContainer(c, args[0])
	if err != nil {
		return err
	}
	defer file.close()
	key, err := unlock(c, file.stores(), keyRequest{container: args[0]})
	if err != nil {
		return err
	}
	defer key.Close()
	if key.Slot != volume.AnySlot {
		notef("key slot %d opens", key.Slot)
	}
	return nil
}

// opening is a container on its way to being open.
type opening struct {
	container  string // as the person calls it
	options    mountOptions
	allowOther bool
	discards   bool
	foreground bool
	state      openState
}

// newOpening finds what is wrong with the command line.
func newOpening(c *cli.Context, container, mountPoint string) (*opening, error) {
	kernel, err := chosenKernel(c)
	if err != nil {
		return nil, err
	}
	o := &opening{
		container:  container,
		options:    *c.Generic("options").(*mountOptions),
		allowOther: c.Bool("allow-other"),
		discards:   c.Bool("allow-discards"),
		foreground: c.Bool("foreground"),
		state: openState{
			Raw:      c.Bool("raw"),
			ReadOnly: c.Bool("readonly"),
			Kernel:   kernel.Resolve().String(),
			Opening:  true,
		},
	}
	o.state.IdleLimit = c.Duration("idle-timeout").Seconds()
	if c.IsSet("idle-timeout") && o.state.IdleLimit <= 0 {
		return nil, usagef("--idle-timeout must be more than nothing")
	}
	if o.state.Raw && len(o.options) > 0 {
		return nil, usagef("--options is for the file system, and --raw mounts none")
	}
	o.state.ReadOnly = o.state.ReadOnly || slices.Contains(o.options, "ro")
	if o.state.MountPoint, err = resolvePath(mountPoint); err != nil {
		return nil, withShareHint(fmt.Errorf("mount point: %w", err), mountPoint)
	}
	if o.state.Container, err = resolvePath(container); err != nil {
		return nil, withShareHint(err, container)
	}
	if c.IsSet("header") {
		if o.state.Header, err = resolvePath(c.String("header")); err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
	}
	for _, path := range []string{o.state.MountPoint, o.state.Container, o.state.Header} {
		if !utf8.ValidString(path) { // the state of what is open is JSON
			return nil, failf(exitUsage, "rename it", "%q is not in UTF-8", path)
		}
	}
	return o, nil
}

// mountOptions collects what -o is given, once or more often.
type mountOptions []string

func (m *mountOptions) Set(text string) error {
	if text == m.String() {
		return nil // the library sets it again, for the other name of the flag
	}
	for option := range strings.SplitSeq(text, ",") {
		if option != "" {
			*m = append(*m, option)
		}
	}
	return nil
}

func (m *mountOptions) String() string { return strings.Join(*m, ",") }

func (o *opening) open(c *cli.Context) error {
	file, err := o.openFiles(c)
	if err != nil {
		return err
	}
	defer file.close()
	header, err := volume.ReadHeader(file.stores())
	if err != nil {
		return fmt.Errorf("%s: %w", o.container, err)
	}
	o.state.Type, o.state.Cipher = header.Type, header.Cipher+"-"+header.Mode

	key, err := unlock(c, file.stores(), keyRequest{container: o.container})
	if err != nil {
		return err
	}
	defer key.Close()
	o.state.KeySlot = key.Slot
	if err := o.lookInside(file, key); err != nil {
		return err
	}
	return o.start(c.Context, file, key)
}

func alreadyOpen(container, place string) error {
	return failf(exitBusy, "serpcrypt close "+shellQuote(place), "%s is already open at %s", container, place)
}

// openFiles opens and locks the container, for reading alone if it cannot be
// written.
func (o *opening) openFiles(c *cli.Context) (*container, error) {
	file, err := lockContainer(c, o.state.Container, o.state.ReadOnly)
	if errors.Is(err, volume.ErrReadOnly) {
		why := "cannot be written"
		if errors.Is(err, unix.EROFS) {
			why = "is on a disk that is read-only"
		}
		notef("%s %s: it is opened read-only", o.container, why)
		o.state.ReadOnly = true
		file, err = lockContainer(c, o.state.Container, true)
	}
	if errors.Is(err, volume.ErrBusy) {
		if place := whereOpen(o.state.Container); place != "" {
			return nil, alreadyOpen(o.container, place)
		}
	}
	return file, err
}

// lookInside finds out what is to be mounted.
func (o *opening) lookInside(file *container, key *volume.Key) (err error) {
	v, err := volume.Open(file.stores(), key, volume.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	o.state.Size = v.Size()
	found, err := fsprobe.Probe(v)
	if err != nil {
		return err
	}
	if found != nil && found.Size > v.Size() {
		what := fmt.Sprintf("%s inside takes %d bytes, and the container holds only %d: it has been cut off", found.Name, found.Size, v.Size())
		if !o.state.Raw {
			return failf(exitBad, hintRaw, "%s: %s", o.container, what)
		}
		warnf("%s", what)
	}
	if found != nil && found.Name == fsprobe.UnfinishedImport {
		if !o.state.Raw {
			return failf(exitBad, "import again", "%s: %s", o.container, unfinishedText)
		}
		warnf("%s", unfinishedText)
	}
	if o.state.Raw {
		return nil
	}
	if found == nil {
		return failf(exitBad, hintRaw, "%s holds no file system that is known", o.container)
	}
	o.chooseDriver(found)
	return nil
}

// start brings the server up, mounts the file system, and lets the server
// stay. If it fails, nothing is left of it.
func (o *opening) start(ctx context.Context, file *container, key *volume.Key) error {
	folder, err := makeRuntimeFolder()
	if err != nil {
		return err
	}
	o.state.Since = time.Now().Truncate(time.Second)
	entry, lock, err := folder.newEntry(o.state)
	if err != nil {
		return err
	}
	defer lock.Close()
	server, err := startServer(ctx, serverSettings{
		Entry:      entry.path,
		State:      o.state,
		AllowOther: o.allowOther,
		Discards:   o.discards && o.state.Raw,
		Foreground: o.foreground,
		Quiet:      screen.quiet,
	}, key.Bytes, file, lock)
	if err != nil {
		return errors.Join(err, entry.remove())
	}
	o.state.PID = server.process.Pid
	if !o.state.Raw {
		err = o.mountFileSystem(ctx, entry, server)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = server.commit(o.state)
	}
	if err != nil {
		server.abort()
		return err
	}
	if o.foreground {
		// The lock on the container is to end with the server.
		key.Close()
		file.close()
		lock.Close()
		return server.stayWith(ctx)
	}
	return nil
}
