// Package mounts reads the kernel's table of mounts. It does not look at a mount
// point itself: if whoever serves it is dead or stuck, that would fail or wait.
package mounts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"serpcrypt/internal/procs"
)

// Mount is a line of the table.
type Mount = mountinfo.Info

// At returns what is mounted at path, which is absolute and has no symbolic links.
// The last is the one that is seen there; it covers the others.
func At(path string) ([]*Mount, error) {
	return find(func(m *Mount) bool { return m.Mountpoint == path })
}

// Top returns the mount that is seen at path, or nil.
func Top(path string) (*Mount, error) {
	mounts, err := At(path)
	if err != nil || len(mounts) == 0 {
		return nil, err
	}
	return mounts[len(mounts)-1], nil
}

func find(wanted func(m *Mount) bool) ([]*Mount, error) {
	mounts, err := mountinfo.GetMounts(func(m *Mount) (skip, stop bool) { return !wanted(m), false })
	if err != nil {
		return nil, fmt.Errorf("mounts: table of mounts: %w", err)
	}
	return mounts, nil
}

// Below returns the mount points inside of path.
func Below(path string) ([]string, error) {
	mounts, err := find(func(m *Mount) bool { return strings.HasPrefix(m.Mountpoint, path+"/") })
	return points(mounts), err
}

// OfDevice returns where the file system with this device number is seen.
func OfDevice(major, minor int) ([]string, error) {
	mounts, err := find(func(m *Mount) bool { return m.Major == major && m.Minor == minor })
	return points(mounts), err
}

// Like returns where what m is, or was, a mount of can be seen: bind mounts, for
// example.
func Like(m *Mount) ([]string, error) {
	mounts, err := find(func(other *Mount) bool { return sameFileSystem(m, other) })
	return points(mounts), err
}

func sameFileSystem(a, b *Mount) bool {
	return a.Major == b.Major && a.Minor == b.Minor && a.FSType == b.FSType && a.Source == b.Source
}

// Elsewhere returns a process of each other mount namespace, such as that of a
// system container, in which m is, or was, mounted, as far as this user can see.
func Elsewhere(m *Mount) []procs.Process {
	var holders []procs.Process
	looked := map[string]bool{Namespace("self"): true}
	for _, pid := range procs.IDs() {
		namespace := Namespace(strconv.Itoa(pid))
		if namespace == "" || looked[namespace] {
			continue
		}
		mounts, err := tableOf(pid)
		if err != nil {
			continue // ended in between
		}
		looked[namespace] = true
		if slices.ContainsFunc(mounts, func(other *Mount) bool { return sameFileSystem(m, other) }) {
			holders = append(holders, procs.Process{PID: pid, Name: procs.Name(pid)})
		}
	}
	return holders
}

// tableOf returns the mounts that a process sees.
func tableOf(pid int) ([]*Mount, error) {
	table, err := os.Open(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return nil, err
	}
	defer table.Close()
	return mountinfo.GetMountsFromReader(table, nil)
}

// Namespace names the mount namespace of a process: its id, or "self". It is "" if
// this user may not know it.
func Namespace(process string) string {
	name, err := os.Readlink(filepath.Join("/proc", process, "ns", "mnt"))
	if err != nil {
		return ""
	}
	return name
}

func points(mounts []*Mount) (paths []string) {
	for _, m := range mounts {
		paths = append(paths, m.Mountpoint)
	}
	return paths
}

// Containing returns the mount that path, which is absolute, lies in. It does not
// look at path itself.
func Containing(path string) (*Mount, error) {
	mounts, err := find(func(m *Mount) bool {
		return path == m.Mountpoint || m.Mountpoint == "/" || strings.HasPrefix(path, m.Mountpoint+"/")
	})
	var found *Mount
	for _, m := range mounts {
		if found == nil || len(m.Mountpoint) >= len(found.Mountpoint) { // a later one covers an earlier one
			found = m
		}
	}
	return found, err
}

// IsSeen reports whether m is what is seen at its mount point, as far as the table
// tells: it may be covered from further up, see Cover.
func IsSeen(m *Mount) bool {
	top, err := Top(m.Mountpoint)
	return err == nil && top != nil && top.ID == m.ID
}

// Cover returns where another file system is mounted over m, at its mount point or
// above, so that no path leads to m; or "". For this alone it walks to mount
// points.
func Cover(m *Mount) (string, error) {
	for path := m.Mountpoint; ; path = filepath.Dir(path) {
		id, err := seenAt(path)
		if err != nil && path != "/" {
			continue // there is no such folder in what covers
		}
		if err != nil {
			return "", err
		}
		if id == m.ID {
			return "", nil
		}
		over, err := find(func(other *Mount) bool { return other.ID == id })
		if err != nil || len(over) == 0 { // the latter: gone in between
			return "", err
		}
		return over[0].Mountpoint, nil
	}
}

// seenAt returns the number in the table of mounts of what is seen at path.
// It only walks to the file, and asks nothing of it.
func seenAt(path string) (id int, err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("mounts: %s: %w", path, err)
	}
	defer unix.Close(fd)
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, fmt.Errorf("mounts: %s: %w", path, err)
	}
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "mnt_id: %d", &id); n == 1 {
			return id, nil
		}
	}
	return 0, fmt.Errorf("mounts: %s: its mount is not known", path)
}

// Watch returns a channel on which something arrives after each change of the
// table.
func Watch() (<-chan struct{}, error) {
	// The kernel tells one poller of each change, so package os must not open
	// the table: it would have the runtime poll it, too.
	table, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("mounts: table of mounts: %w", err)
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

// IsFuse reports whether a process serves the file system.
func IsFuse(m *Mount) bool {
	return m.FSType == "fuse" || strings.HasPrefix(m.FSType, "fuse.") || m.FSType == "fuseblk"
}
