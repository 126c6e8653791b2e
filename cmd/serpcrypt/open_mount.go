package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"serpcrypt/internal/loopdev"
)

const hintAllowOther = "have the administrator put user_allow_other into /etc/fuse.conf"

// The drivers for the file system inside.
const (
	driverKernel  = "kernel"
	driverFuse2fs = "fuse2fs"
)

// chooseDriver finds out who can mount the file system inside.
func (o *opening) chooseDriver() error {
	switch {
	case os.Geteuid() == 0:
		o.state.Driver = driverKernel
	case slices.Contains([]string{"ext2", "ext3", "ext4"}, o.state.FileSystem):
		o.state.Driver = driverFuse2fs
	default:
		return failf(exitBad, hintRaw+", or work as root",
			"%s holds %s, and without root only ext2, ext3 and ext4 can be mounted", o.container, o.state.FileSystem)
	}
	return nil
}

// mountFileSystem mounts the file system inside the volume that server shows.
func (o *opening) mountFileSystem(ctx context.Context, e runEntry, server *serverProcess) error {
	var err error
	if o.state.Driver == driverKernel {
		err = o.mountByKernel(ctx, e, server)
	} else {
		err = o.mountByFuse2fs(ctx, e)
	}
	if err != nil {
		return err
	}
	return waitUsable(ctx, o.state.MountPoint)
}

func (o *opening) mountByKernel(ctx context.Context, e runEntry, server *serverProcess) error {
	loop, err := loopdev.Attach(e.rawFile(), loopdev.Options{ReadOnly: o.state.ReadOnly})
	if errors.Is(err, loopdev.ErrNoDevice) {
		return failf(exitBad, "modprobe loop, or "+hintRaw, "%w", err)
	}
	if err != nil {
		return err
	}
	defer loop.Close()
	o.state.Loop = loop.Path
	if o.discards && !o.state.ReadOnly {
		if err := allowDiscards(loop, server); err != nil {
			return err
		}
	}
	args := []string{"-t", o.state.FileSystem}
	if options := o.innerOptions(); len(options) > 0 {
		args = append(args, "-o", strings.Join(options, ","))
	}
	return o.runMounter(ctx, e, "mount", append(args, loop.Path, o.state.MountPoint)...)
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

func (o *opening) mountByFuse2fs(ctx context.Context, e runEntry) error {
	if o.discards {
		warnf("discards stay forbidden: %s does not tell discarding from zeroing", driverFuse2fs)
	}
	// Who may open the container may do all in it.
	options := append([]string{"fakeroot"}, o.innerOptions()...)
	if o.allowOther {
		options = append(options, "allow_other")
	}
	if !o.state.ReadOnly {
		notef("%s keeps no journal: if it or the server is killed, the file system may need e2fsck", driverFuse2fs)
	}
	return o.runMounter(ctx, e, driverFuse2fs, e.rawFile(), o.state.MountPoint, "-o", strings.Join(options, ","))
}

// waitUsable waits until the file system at dir answers: fuse2fs is in the
// background before it is ready.
func waitUsable(ctx context.Context, dir string) error {
	return untilDone(ctx, func() error {
		_, err := os.Stat(dir)
		return err
	})
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
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// Ctrl-C reaches it through the context only.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir = "/"
	debugf("run %s", strings.Join(cmd.Args, " "))
	err = cmd.Run()
	text := strings.TrimSpace(said.String())
	debugf("%s says: %s", program, text)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		// fuse2fs ends well also where it fails.
		m, err := e.outerMount(o.state)
		if err != nil || m != nil {
			return err
		}
	}
	if strings.Contains(text, "user_allow_other") {
		return failf(exitPermission, hintAllowOther, "--allow-other is forbidden by /etc/fuse.conf")
	}
	if text == "" {
		text = fmt.Sprint(err)
	}
	return failf(exitBad, "if it is damaged, "+hintRaw+" and repair it",
		"%s in %s cannot be mounted: %s", o.state.FileSystem, o.container, text)
}

// hintInstall is about a driver, or mount: their packages have the same names.
func hintInstall(program string) string {
	return fmt.Sprintf("install it (Debian, Ubuntu: apt-get install %s)", program)
}

// findProgram looks where system programs are too, which an ordinary user's
// PATH often leaves out.
func findProgram(name string) (string, error) {
	for _, dir := range []string{"", "/usr/sbin", "/sbin", "/usr/bin", "/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}
