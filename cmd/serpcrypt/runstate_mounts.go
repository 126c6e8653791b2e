package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/loopdev"
	"serpcrypt/internal/mounts"
)

// outerMount returns the entry's mount at its mount point, of the file system
// or, with --raw, the volume. It is nil if there is none, or only such of
// somebody else. Others may cover it.
func (e runEntry) outerMount(s openState) (*mounts.Mount, error) {
	all, err := mounts.At(s.MountPoint)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	loops, err := loopdev.Find(e.rawFile())
	for _, m := range slices.Backward(all) {
		if s.Raw && isVolume(m, s) || !s.Raw && (m.Source == e.rawFile() || slices.Contains(loops, m.Source)) {
			return m, nil
		}
	}
	return nil, err
}

func isVolume(m *mounts.Mount, s openState) bool {
	return m.FSType == fusefs.Type && m.Source == fuseSource(s)
}

// errCovered: unmounting would hit the mount of somebody else.
var errCovered = fmt.Errorf("another file system is mounted over it: %w", unix.EBUSY)

// unmountOuter unmounts what outerMount returns. If there is nothing, or
// somebody else is faster, all is well.
func (e runEntry) unmountOuter(s openState, lazy bool) error {
	return e.unmountOuterBy(s, lazy, fusefs.Unmount)
}

// unmountOuterApart is unmountOuter for those who must not wait for the server of
// the volume, or for longer than ctx.
func (e runEntry) unmountOuterApart(ctx context.Context, s openState, lazy bool) error {
	return e.unmountOuterBy(s, lazy, func(dir string, lazy bool) error { return unmountApart(ctx, dir, lazy) })
}

func (e runEntry) unmountOuterBy(s openState, lazy bool, unmount func(dir string, lazy bool) error) error {
	m, err := e.outerMount(s)
	if err != nil || m == nil {
		return err
	}
	cover, err := mounts.Cover(m)
	if err != nil {
		return err
	}
	if cover != "" {
		return errCovered
	}
	err = unmount(s.MountPoint, lazy)
	if err == nil {
		return nil
	}
	if m, lookErr := e.outerMount(s); lookErr == nil && m == nil {
		return nil
	}
	return err
}

// fuseDir returns where the server mounts the volume.
func (e runEntry) fuseDir(s openState) string {
	if s.Raw {
		return s.MountPoint
	}
	return e.rawDir()
}

// fuseMounted reports whether what the server mounted is still in place.
func (e runEntry) fuseMounted(s openState) (bool, error) {
	if s.Raw {
		m, err := e.outerMount(s)
		return m != nil, err
	}
	m, err := mounts.Top(e.fuseDir(s))
	return m != nil && m.FSType == fusefs.Type, err
}

// fuseSource is what the table of mounts shows as the device of a volume.
func fuseSource(s openState) string { return s.Container }

// cleanUp takes away what a dead server left: mounts, loop device, files. It
// returns only when all of it is gone.
func (e runEntry) cleanUp() error {
	state, err := e.readState()
	if err != nil {
		debugf("%v", err)
	}
	var failed error
	note := func(err error) {
		if err != nil {
			debugf("%v", err)
			failed = errors.Join(failed, err)
		}
	}
	waitGone(state.PID)
	// Whoever has files open there gets nothing but errors any more, so they
	// are no reason to leave it.
	if state.MountPoint != "" && !state.Raw {
		if e.unmountOuter(state, false) != nil {
			note(e.unmountOuter(state, true))
		}
		loops, err := loopdev.Find(e.rawFile())
		note(err)
		for _, loop := range loops {
			note(loopdev.Detach(loop))
		}
	}
	if mounted, err := e.fuseMounted(state); err != nil || mounted {
		note(err)
		note(fusefs.Unmount(e.fuseDir(state), true))
	}
	if failed != nil {
		return fmt.Errorf("clean up after a dead server: %w", failed)
	}
	return e.remove()
}

// waitGone waits until a dead server has let go of all that it had: its lock in the
// runtime folder may be free some time before that on the container.
func waitGone(pid int) {
	const most = 2000 // milliseconds; the number may be that of another process by now
	if pid <= 0 {
		return
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(process)
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, most)
}

// cleanUpLocked is cleanUp while others may try the same.
func (e runEntry) cleanUpLocked() error {
	unlock, err := e.folder().lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(e.path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return e.cleanUp()
}
