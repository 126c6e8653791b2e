package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

func closeCommand() *cli.Command {
	return &cli.Command{
		Name:      "close",
		Usage:     "sync, unmount and forget the keys",
		UsageText: "serpcrypt close [--lazy] MOUNTPOINT|CONTAINER ... | --all",
		Description: `serpcrypt close box
   serpcrypt close --all`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "close every container that is open"},
			&cli.BoolFlag{Name: "lazy", Usage: "if files are in use, take them out of sight, and close when they no longer are"},
		},
		Action: runClose,
	}
}

func runClose(c *cli.Context) error {
	if err := refuseJSON(c); err != nil {
		return err
	}
	names := c.Args().Slice()
	hint := hintHelp(commandPath(c))
	switch {
	case c.Bool("all") && len(names) > 0:
		return failf(exitUsage, hint, "unexpected argument %q beside --all", names[0])
	case !c.Bool("all") && len(names) == 0:
		return failf(exitUsage, hint, "MOUNTPOINT or CONTAINER is missing")
	}
	found, err := findOpen()
	if err != nil {
		return err
	}
	var errs []error
	if !c.Bool("all") {
		var chosen []openContainer
		for _, name := range names {
			matches, err := matchOpen(found, name)
			if err != nil {
				errs = append(errs, err)
			}
			chosen = append(chosen, matches...)
		}
		found = chosen
	}
	done := make(map[string]bool) // it may be named twice
	for _, f := range found {
		if done[f.entry.path] {
			continue
		}
		done[f.entry.path] = true
		if err := f.close(c.Context, c.Bool("lazy")); err != nil {
			errs = append(errs, err)
		}
	}
	return reportAllButLast(errs)
}

// reportAllButLast prints errors, and returns the last for main to print.
func reportAllButLast(errs []error) error {
	for i, err := range errs {
		if i == len(errs)-1 {
			return err
		}
		report(err)
	}
	return nil
}

// close closes the container. If it is in use, all stays as it is.
func (f openContainer) close(ctx context.Context, lazy bool) error {
	life, err := f.entry.watch()
	if err != nil {
		return err
	}
	defer life.close()
	if !life.alive() {
		if f.alive { // just before; perhaps it has been closed in between
			return reportEnd(f.entry)
		}
		return f.closeDead()
	}
	syncErr, err := f.unmount(lazy)
	if err != nil {
		return err
	}
	if err := f.waitForEnd(ctx, life, lazy); err != nil {
		return err
	}
	if syncErr != nil {
		return failf(exitBad, "check the file system in it", "%s: the last changes are not on the disk: %w", f.state.Container, syncErr)
	}
	return nil
}

// closeDead takes away what a dead server left.
func (f openContainer) closeDead() error {
	why := f.why()
	if err := f.entry.cleanUpLocked(); err != nil {
		return err
	}
	return failf(exitBad, "check the file system in it before you rely on it", "%s was not closed properly: %s", f.state.Container, why)
}

// unmount unmounts what people see; the server notices and does the rest.
func (f openContainer) unmount(lazy bool) (syncErr, err error) {
	outer, err := f.entry.outerMount(f.state)
	if err != nil {
		return nil, err
	}
	if outer == nil {
		return nil, nil // already done, by umount perhaps
	}
	switch f.state.Driver {
	case "": // the volume as it is
	case driverKernel:
		// The kernel tells of failed writes here, and not when it unmounts.
		syncErr = syncFileSystem(f.state.MountPoint)
	default:
		if err := unix.Statfs(f.state.MountPoint, new(unix.Statfs_t)); errors.Is(err, unix.ENOTCONN) {
			syncErr = fmt.Errorf("%s died", f.state.Driver)
		}
	}
	// Desktops look into new mounts for a moment.
	const attempts, pause = 4, 100 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err = f.entry.unmountOuter(f.state, lazy)
		if !errors.Is(err, unix.EBUSY) || attempt == attempts {
			break
		}
		time.Sleep(pause)
	}
	if errors.Is(err, errCovered) {
		return nil, failf(exitBusy, "umount "+shellQuote(f.state.MountPoint), "%s: %w", f.state.MountPoint, err)
	}
	if errors.Is(err, unix.EBUSY) {
		return nil, failf(exitBusy, "end them, or use --lazy", "%s is in use%s", f.state.MountPoint, usersText(f.state.MountPoint))
	}
	if err != nil || lazy {
		return syncErr, err
	}
	// Only now, as some such mounts go away together with the one unmounted.
	others, err := mountsLike(outer)
	if err != nil || len(others) == 0 {
		return syncErr, err
	}
	err = failf(exitBusy, "umount "+shellQuote(others[0])+", then it is closed", "%s is unmounted, but still seen at %s", f.state.MountPoint, strings.Join(others, ", "))
	return nil, errors.Join(err, syncErr)
}

// usersText names who uses the files below path, as far as this user can see.
func usersText(path string) string {
	var who []string
	for _, u := range findUsers(path) {
		who = append(who, fmt.Sprintf("%s (%d)", u.name, u.pid))
	}
	if below, err := mountsBelow(path); err == nil {
		for _, m := range below {
			who = append(who, "the mount at "+m)
		}
	}
	if len(who) == 0 {
		return ""
	}
	return " by " + strings.Join(who, ", ")
}

// waitForEnd waits until the server has synced, wiped its keys and ended.
func (f openContainer) waitForEnd(ctx context.Context, life *serverLife, lazy bool) error {
	const (
		lazyWait = 2 * time.Second
		tellWait = 10 * time.Second
	)
	start, told := time.Now(), false
	for pause := firstPause; life.alive(); pause = min(2*pause, 10*firstPause) {
		waited := time.Since(start)
		if lazy && waited > lazyWait {
			notef("%s is unmounted, and closed when the last file in it is", f.state.Container)
			return nil
		}
		if waited > tellWait && !told {
			told = true
			notef("still waiting: %s is in use%s", f.state.Container, usersText(f.entry.fuseDir(f.state)))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is unmounted, but not closed yet: %w", f.state.Container, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
	return reportEnd(f.entry)
}

// reportEnd says how a server ended: it removes its entry if all went well,
// and leaves word of what did not.
func reportEnd(e runEntry) error {
	state, err := e.readState()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return openContainer{entry: e, state: state}.closeDead()
}
