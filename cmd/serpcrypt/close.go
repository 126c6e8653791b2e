package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"serpcrypt/internal/mounts"
	"serpcrypt/internal/procs"
)

const hintCheck = "serpcrypt verify --fsck checks the file system in it, before you rely on it"

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
	opening, err := findOpening()
	if err != nil {
		return err
	}
	var errs []error
	if c.Bool("all") {
		errs = append(errs, refuseOpening(opening)...)
	} else {
		var chosen []openContainer
		for _, name := range names {
			matches, err := matchOpen(found, name)
			if err != nil {
				if soon, notSoon := matchOpen(opening, name); notSoon == nil {
					errs = append(errs, refuseOpening(soon)...)
				} else {
					errs = append(errs, err)
				}
			}
			chosen = append(chosen, matches...)
		}
		found = chosen
	}
	errs = append(errs, closeAll(c.Context, found, c.Bool("lazy"))...)
	return reportAllButLast(errs)
}

// closeAll closes containers, the last first. One that is busy is tried again when
// another has been closed, which may have been inside of it.
func closeAll(ctx context.Context, open []openContainer, lazy bool) []error {
	var busy []openContainer
	var errs, busyErrs []error
	done := make(map[string]bool) // it may be named twice
	for _, f := range slices.Backward(open) {
		if done[f.entry.path] {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		done[f.entry.path] = true
		err := f.close(ctx, lazy)
		if code, _ := explain(err); code == exitBusy {
			busy, busyErrs = append(busy, f), append(busyErrs, err)
		} else if err != nil {
			errs = append(errs, err)
		}
	}
	if len(busy) > 0 && len(busy) < len(done) {
		slices.Reverse(busy)
		busyErrs = closeAll(ctx, busy, lazy)
	}
	return append(errs, busyErrs...)
}

func refuseOpening(opening []openContainer) (errs []error) {
	for _, f := range opening {
		errs = append(errs, failf(exitBusy, "try again when it is open", "%s is just being opened", f.state.Container))
	}
	return errs
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
	switch {
	case life == nil && f.alive: // just before: somebody else has closed it, and was told how it ended
		return notOpen(f.state.MountPoint)
	case !life.alive() && f.alive:
		return f.reportEnd(life)
	case !life.alive():
		return f.closeDead()
	}
	syncErr, err := f.unmount(ctx, lazy)
	if err != nil {
		return err
	}
	if err := f.waitForEnd(ctx, life, lazy); err != nil {
		return err
	}
	if syncErr != nil {
		return failf(exitBad, hintCheck, "%s: the last changes are not on the disk: %w", f.state.Container, syncErr)
	}
	return nil
}

// closeDead takes away what a dead server left.
func (f openContainer) closeDead() error {
	why := f.why()
	if err := f.entry.cleanUpLocked(); err != nil {
		return err
	}
	return notClosedProperly(f.state.Container, why)
}

func notClosedProperly(container, why string) error {
	return failf(exitBad, hintCheck, "%s was not closed properly: %s", container, why)
}

// unmount unmounts what people see; the server notices and does the rest.
func (f openContainer) unmount(ctx context.Context, lazy bool) (syncErr, err error) {
	outer, err := f.entry.outerMount(f.state)
	if err != nil {
		return nil, err
	}
	if outer == nil {
		return nil, f.isHere() // already done, by umount perhaps
	}
	switch f.state.Driver {
	case "": // the volume as it is
	case driverKernel:
		// The kernel tells of failed writes here, and not when it unmounts.
		_, syncErr = runApart(ctx, syncName, "--", f.state.MountPoint)
	default:
		err := untilDone(ctx, func() error { return unix.Statfs(f.state.MountPoint, new(unix.Statfs_t)) })
		if errors.Is(err, unix.ENOTCONN) {
			syncErr = fmt.Errorf("%s died", f.state.Driver)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	// Desktops look into new mounts for a moment.
	const attempts, pause = 4, 100 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err = f.entry.unmountOuterApart(ctx, f.state, lazy)
		if !errors.Is(err, unix.EBUSY) || attempt == attempts {
			break
		}
		time.Sleep(pause)
	}
	if errors.Is(err, errCovered) {
		cover, coverErr := mounts.Cover(outer)
		return nil, errors.Join(failf(exitBusy, "umount "+shellQuote(cover), "%s: %w", f.state.MountPoint, err), coverErr)
	}
	if errors.Is(err, unix.EBUSY) {
		return nil, failf(exitBusy, "end what uses it, or close it with --lazy", "%s is in use%s", f.state.MountPoint, usersText(filesOf(outer)))
	}
	if err != nil || lazy {
		return syncErr, err
	}
	// Only now, as some such mounts go away together with the one unmounted.
	others, err := mounts.Like(outer)
	if err != nil {
		return syncErr, err
	}
	if len(others) > 0 {
		err = failf(exitBusy, "umount "+shellQuote(others[0])+", then it is closed", "%s is unmounted, but still seen at %s", f.state.MountPoint, strings.Join(others, ", "))
		return nil, errors.Join(err, syncErr)
	}
	if holders := stayElsewhere(outer); len(holders) > 0 {
		err = failf(exitBusy, "when that has ended it is closed", "%s is unmounted, but not for %s in another mount namespace", f.state.MountPoint, procs.Join(holders))
		return nil, errors.Join(err, syncErr)
	}
	return syncErr, nil
}

// stayElsewhere is mounts.Elsewhere for those that do not end within a moment, as
// many sandboxes do.
func stayElsewhere(m *mounts.Mount) (holders []procs.Process) {
	const attempts, pause = 20, 100 * time.Millisecond
	for range attempts {
		if holders = mounts.Elsewhere(m); len(holders) == 0 {
			break
		}
		time.Sleep(pause)
	}
	return holders
}

// isHere returns an error if the container was opened in another mount
// namespace, and so is mounted there.
func (f openContainer) isHere() error {
	theirs := mounts.Namespace(strconv.Itoa(f.state.PID))
	if theirs == "" || theirs == mounts.Namespace("self") {
		return nil
	}
	hint := fmt.Sprintf("nsenter --target %d --mount --root serpcrypt close %s", f.state.PID, shellQuote(f.state.MountPoint))
	return failf(exitBusy, hint, "%s is open in another mount namespace", f.state.Container)
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
			notef("still waiting: %s is in use%s", f.state.Container, usersText(f.heldFiles()))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is unmounted, but not closed yet: %w", f.state.Container, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
	return f.reportEnd(life)
}

// reportEnd says how the server ended that life has watched, even if somebody
// else has been told of it before.
func (f openContainer) reportEnd(life *serverLife) error {
	if err := reportEnd(f.entry); err != nil {
		return err
	}
	if !life.endedWell() {
		return notClosedProperly(f.state.Container, "somebody else was told why")
	}
	return nil
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
