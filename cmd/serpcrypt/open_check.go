package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"serpcrypt/internal/mounts"

	"golang.org/x/sys/unix"
)

// checkMountPoint says why nothing can be mounted at path, which is absolute
// and has no symbolic links, or nil.
func checkMountPoint(path string) error {
	// First, as a dead mount answers to nothing else.
	m, err := mounts.Top(path)
	if err != nil {
		return err
	}
	if m != nil {
		return failf(exitBusy, hintAnotherDir, "mount point %s: %s is already mounted there", path, m.Source)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return failf(exitBad, "mkdir "+shellQuote(path), "mount point %s does not exist", path)
	}
	if err != nil {
		return withShareHint(fmt.Errorf("mount point: %w", err), path)
	}
	if !info.IsDir() {
		return failf(exitBad, hintAnotherDir, "mount point %s is not a folder", path)
	}
	names, err := os.ReadDir(path)
	if err != nil {
		return withShareHint(fmt.Errorf("mount point: %w", err), path)
	}
	if len(names) > 0 {
		return failf(exitBusy, hintAnotherDir, "mount point %s is not empty", path)
	}
	if err := unix.Access(path, unix.W_OK); err != nil && os.Geteuid() != 0 {
		return failf(exitPermission, hintAnotherDir, "mount point %s: %w", path, err)
	}
	if m, err := mounts.Containing(path); os.Geteuid() != 0 && err == nil && m != nil && ownersOnly(m) {
		return failf(exitPermission, hintShare(path), "mount point %s: fusermount3 has no access to it", path)
	}
	return nil
}

// removeDead cleans up after servers that died with the container or at the
// mount point of s.
func removeDead(s openState) error {
	found, err := findOpen()
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.alive || f.state.Container != s.Container && f.state.MountPoint != s.MountPoint {
			continue
		}
		warnf("%s was not closed properly: %s", f.state.Container, f.why())
		if err := f.entry.cleanUpLocked(); err != nil {
			return err
		}
	}
	return nil
}
