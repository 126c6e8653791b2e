package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/loopdev"
)

// Nothing here looks at a mount point itself: if its server is dead or stuck,
// that would fail or wait. The kernel's table of mounts says enough.

// mountsAt returns what is mounted at path, which is absolute and has no
// symbolic links. The last is the one that is seen there; it covers the others.
func mountsAt(path string) ([]*mountinfo.Info, error) {
	return findMounts(func(m *mountinfo.Info) bool { return m.Mountpoint == path })
}

// topMount returns the mount that is seen at path, or nil.
func topMount(path string) (*mountinfo.Info, error) {
	mounts, err := mountsAt(path)
	if err != nil || len(mounts) == 0 {
		return nil, err
	}
	return mounts[len(mounts)-1], nil
}

func findMounts(wanted func(m *mountinfo.Info) bool) ([]*mountinfo.Info, error) {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return !wanted(m), false })
	if err != nil {
		return nil, fmt.Errorf("table of mounts: %w", err)
	}
	return mounts, nil
}

// mountsBelow returns the mount points inside of path.
func mountsBelow(path string) ([]string, error) {
	mounts, err := findMounts(func(m *mountinfo.Info) bool { return strings.HasPrefix(m.Mountpoint, path+"/") })
	return mountPoints(mounts), err
}

// mountsOf returns where the file system with this device number is seen.
func mountsOf(major, minor int) ([]string, error) {
	mounts, err := findMounts(func(m *mountinfo.Info) bool { return m.Major == major && m.Minor == minor })
	return mountPoints(mounts), err
}

// mountsLike returns where what m is, or was, a mount of can be seen: bind
// mounts, for example.
func mountsLike(m *mountinfo.Info) ([]string, error) {
	mounts, err := findMounts(func(other *mountinfo.Info) bool { return isSameFileSystem(m, other) })
	return mountPoints(mounts), err
}

func isSameFileSystem(a, b *mountinfo.Info) bool {
	return a.Major == b.Major && a.Minor == b.Minor && a.FSType == b.FSType && a.Source == b.Source
}

// mountsElsewhere returns a process of each other mount namespace, such as that
// of a system container, in which m is, or was, mounted, as far as this user can
// see.
func mountsElsewhere(m *mountinfo.Info) []user {
	var holders []user
	looked := map[string]bool{namespaceOf("self"): true}
	for _, pid := range processes() {
		namespace := namespaceOf(strconv.Itoa(pid))
		if namespace == "" || looked[namespace] {
			continue
		}
		mounts, err := mountTable(pid)
		if err != nil {
			continue // ended in between
		}
		looked[namespace] = true
		if slices.ContainsFunc(mounts, func(other *mountinfo.Info) bool { return isSameFileSystem(m, other) }) {
			holders = append(holders, user{pid, processName(pid)})
		}
	}
	return holders
}

// mountTable returns the mounts that a process sees.
func mountTable(pid int) ([]*mountinfo.Info, error) {
	table, err := os.Open(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return nil, err
	}
	defer table.Close()
	return mountinfo.GetMountsFromReader(table, nil)
}

// namespaceOf names the mount namespace of a process, or "" if this user may not
// know it.
func namespaceOf(process string) string {
	name, err := os.Readlink(filepath.Join("/proc", process, "ns", "mnt"))
	if err != nil {
		return ""
	}
	return name
}

func mountPoints(mounts []*mountinfo.Info) []string {
	var points []string
	for _, m := range mounts {
		points = append(points, m.Mountpoint)
	}
	return points
}

// resolvePath makes path absolute and free of symbolic links, and does not
// look at what it leads to.
func resolvePath(path string) (string, error) {
	const maxLinks = 40
	for range maxLinks {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(absolute))
		if err != nil {
			return "", err
		}
		absolute = filepath.Join(folder, filepath.Base(absolute))
		target, err := os.Readlink(absolute)
		if err != nil {
			return absolute, nil // no link, or missing, or out of order
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(folder, target)
		}
		path = target
	}
	return "", fmt.Errorf("%s: %w", path, unix.ELOOP)
}

// outerMount returns the entry's mount at its mount point, of the file system
// or, with --raw, the volume. It is nil if there is none, or only such of
// somebody else. Others may cover it.
func (e runEntry) outerMount(s openState) (*mountinfo.Info, error) {
	mounts, err := mountsAt(s.MountPoint)
	if err != nil || len(mounts) == 0 {
		return nil, err
	}
	loops, err := loopdev.Find(e.rawFile())
	for _, m := range slices.Backward(mounts) {
		if s.Raw && isVolume(m, s) || !s.Raw && (m.Source == e.rawFile() || slices.Contains(loops, m.Source)) {
			return m, nil
		}
	}
	return nil, err
}

func isVolume(m *mountinfo.Info, s openState) bool {
	return m.FSType == fusefs.Type && m.Source == fuseSource(s)
}

// coverOf returns where another file system is mounted over m, at its mount
// point or above, so that no path leads to m; or "".
func coverOf(m *mountinfo.Info) (string, error) {
	for path := m.Mountpoint; ; path = filepath.Dir(path) {
		id, err := mountSeenAt(path)
		if err != nil && path != "/" {
			continue // there is no such folder in what covers
		}
		if err != nil {
			return "", err
		}
		if id == m.ID {
			return "", nil
		}
		over, err := findMounts(func(other *mountinfo.Info) bool { return other.ID == id })
		if err != nil || len(over) == 0 { // the latter: gone in between
			return "", err
		}
		return over[0].Mountpoint, nil
	}
}

// mountSeenAt returns the number in the table of mounts of what is seen at path.
// It only walks to the file, and asks nothing of it.
func mountSeenAt(path string) (id int, err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "mnt_id: %d", &id); n == 1 {
			return id, nil
		}
	}
	return 0, fmt.Errorf("%s: its mount is not known", path)
}

// errCovered: unmounting would hit the mount of somebody else.
var errCovered = fmt.Errorf("another file system is mounted over it: %w", unix.EBUSY)

// unmountOuter unmounts what outerMount returns. If there is nothing, or
// somebody else is faster, all is well.
func (e runEntry) unmountOuter(s openState, lazy bool) error {
	return e.unmountOuterBy(s, lazy, fusefs.Unmount)
}

// unmountOuterApart is unmountOuter for the server of the volume.
func (e runEntry) unmountOuterApart(s openState, lazy bool) error {
	return e.unmountOuterBy(s, lazy, unmountApart)
}

func (e runEntry) unmountOuterBy(s openState, lazy bool, unmount func(dir string, lazy bool) error) error {
	m, err := e.outerMount(s)
	if err != nil || m == nil {
		return err
	}
	cover, err := coverOf(m)
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
	m, err := topMount(e.fuseDir(s))
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

// watchMounts returns a channel on which something arrives after each change
// of the table of mounts.
func watchMounts() (<-chan struct{}, error) {
	// The kernel tells one poller of each change, so package os must not open
	// the table: it would have the runtime poll it, too.
	table, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("table of mounts: %w", err)
	}
	changed := make(chan struct{}, 1)
	go func() {
		fds := []unix.PollFd{{Fd: int32(table), Events: unix.POLLPRI}}
		for {
			if _, err := unix.Poll(fds, -1); err != nil {
				if err == unix.EINTR {
					continue
				}
				time.Sleep(time.Second) // and let the reader look by itself
			}
			select {
			case changed <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	return changed, nil
}
