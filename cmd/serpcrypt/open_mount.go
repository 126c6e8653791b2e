package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/loopdev"
)

// mountFileSystem mounts the file system inside the volume that server shows.
func (o *opening) mountFileSystem(ctx context.Context, e runEntry, server *serverProcess) error {
	var err error
	if o.state.Driver == driverKernel {
		err = o.mountByKernel(ctx, e, server)
	} else {
		err = o.mountByProgram(ctx, e, findDriver(o.state.FileSystem))
	}
	if err != nil {
		return err
	}
	if err := waitUsable(ctx, o.state.MountPoint); err != nil {
		return err
	}
	return o.seeReadOnly(e)
}

func (o *opening) mountByKernel(ctx context.Context, e runEntry, server *serverProcess) error {
	loop, err := o.attachLoop(e)
	if err != nil {
		return err
	}
	defer loop.Close()
	if o.discards && !o.state.ReadOnly {
		if err := allowDiscards(loop, server); err != nil {
			return err
		}
	}
	// No helper, which would be a program like those in drivers.
	args := []string{"-i", "-t", kernelName(o.state.FileSystem)}
	if options := o.innerOptions(); len(options) > 0 {
		args = append(args, "-o", strings.Join(options, ","))
	}
	return o.runMounter(ctx, e, "mount", append(args, loop.Path, o.state.MountPoint)...)
}

// attachLoop makes a block device of the volume.
func (o *opening) attachLoop(e runEntry) (*loopdev.Device, error) {
	loop, err := loopdev.Attach(e.rawFile(), loopdev.Options{ReadOnly: o.state.ReadOnly})
	if errors.Is(err, loopdev.ErrNoDevice) {
		return nil, failf(exitBad, "modprobe loop, or "+hintRaw, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	o.state.Loop = loop.Path
	return loop, nil
}

func allowDiscards(loop *loopdev.Device, server *serverProcess) error {
	err := loop.StopZeroing()
	if errors.Is(err, loopdev.ErrZeroing) {
		warnf("discards stay forbidden: %s, and would answer both alike", errorText(err))
		return nil
	}
	if err != nil {
		return err
	}
	return server.send(order{AllowDiscards: true})
}

func (o *opening) mountByProgram(ctx context.Context, e runEntry, d *driver) error {
	if o.discards {
		warnf("discards stay forbidden: %s does not tell discarding from zeroing", d.program)
	}
	if d.program == driverFuse2fs && !o.state.ReadOnly {
		notef("%s keeps no journal: if it or the server is killed, the file system may need e2fsck", d.program)
	}
	source := e.rawFile()
	if d.blockDevice {
		loop, err := o.attachLoop(e)
		if err != nil {
			return err
		}
		defer loop.Close()
		source = loop.Path
	}
	return o.runMounter(ctx, e, d.program, source, o.state.MountPoint, "-o", o.programOptions(d, source))
}

// waitUsable waits until the file system at dir answers: programs go to the
// background before they are ready.
func waitUsable(ctx context.Context, dir string) error {
	return untilDone(ctx, func() error {
		_, err := os.Stat(dir)
		return err
	})
}

// seeReadOnly notices that nothing can be written where that was not asked for.
func (o *opening) seeReadOnly(e runEntry) error {
	m, err := e.outerMount(o.state)
	if err != nil || m == nil || o.state.ReadOnly {
		return err
	}
	for _, options := range []string{m.Options, m.VFSOptions} {
		if slices.Contains(strings.Split(options, ","), "ro") {
			o.state.ReadOnly = true
		}
	}
	if o.state.ReadOnly {
		notef("%s by %s is mounted read-only", o.state.FileSystem, o.state.Driver)
	}
	return nil
}

func (o *opening) innerOptions() []string {
	if o.state.ReadOnly && !slices.Contains(o.options, "ro") {
		return append([]string{"ro"}, o.options...)
	}
	return o.options
}

// runMounter runs a program that mounts the file system and then ends or goes
// to the background.
func (o *opening) runMounter(ctx context.Context, e runEntry, program string, args ...string) error {
	path, err := findProgram(program)
	if err != nil {
		return failf(exitBad, hintInstall(program), "%s is not installed", program)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir = "/"
	text, err := runProgram(cmd)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		// fuse2fs and fusefat end well also where they fail.
		m, err := e.outerMount(o.state)
		if err != nil || m != nil {
			return err
		}
	}
	if strings.Contains(text, "user_allow_other") {
		return failf(exitPermission, hintAllowOther, "--allow-other is forbidden by /etc/fuse.conf")
	}
	if errors.Is(&fusefs.HelperError{Text: text}, fusefs.ErrForbidden) {
		return failf(exitBad, hintLocalDir, "%s in %s cannot be mounted: %s", o.state.FileSystem, o.container, text)
	}
	if text == "" {
		text = fmt.Sprint(err)
	}
	hint := "if it is damaged, " + hintRaw + " and repair it"
	if option := withoutJournal[o.state.FileSystem]; option != "" && o.state.ReadOnly && strings.Contains(text, "read-only") {
		hint = "if it was not closed properly, open it once where it can be written, or with -o " + option + " to see it as it is"
	}
	return failf(exitBad, hint,
		"%s in %s cannot be mounted: %s", o.state.FileSystem, o.container, text)
}

// withoutJournal is the mount option with which the kernel leaves a journal alone:
// to replay it, also on a read-only mount, it has to write.
var withoutJournal = map[string]string{"ext3": "noload", "ext4": "noload", "xfs": "norecovery"}
