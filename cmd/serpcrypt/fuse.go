package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"serpcrypt/internal/fusefs"
)

const (
	hintLocalDir   = "choose a folder on a disk of this computer"
	hintAllowOther = "have the administrator put user_allow_other into /etc/fuse.conf"
)

// explainFuse adds exit code and hint to an error of fusefs.
func explainFuse(err error) error {
	var helper *fusefs.HelperError
	switch {
	case errors.Is(err, fusefs.ErrAllowOther):
		return failf(exitPermission, hintAllowOther, "%w", err)
	case errors.Is(err, fusefs.ErrNoFuse), errors.Is(err, fusefs.ErrNoHelper), errors.Is(err, fusefs.ErrNoMtab), errors.Is(err, fusefs.ErrNotBuilt),
		errors.As(err, &helper) && !errors.Is(err, fs.ErrPermission):
		return failf(exitBad, hintFuse(err), "%w", err)
	}
	return err
}

// hintFuse says what FUSE is missing.
func hintFuse(err error) string {
	switch {
	case errors.Is(err, fusefs.ErrNoFuse):
		return "load the kernel's module: modprobe fuse"
	case errors.Is(err, fusefs.ErrNoHelper):
		return hintInstall("fuse3") + ", or work as root"
	case errors.Is(err, fusefs.ErrNoMtab):
		return "as root: ln -s ../proc/self/mounts /etc/mtab"
	case errors.Is(err, fusefs.ErrForbidden):
		return hintLocalDir
	}
	return ""
}

// checkFuse mounts for a moment, so that what is missing is known before the
// payload is filled or read, and not an hour later.
func checkFuse() error {
	return withFuse(noVolume{}, fusefs.Options{}, func(*fusefs.Server, string) error { return nil })
}

// noVolume has no content.
type noVolume struct{}

func (noVolume) ReadAt([]byte, int64) (int, error)  { return 0, io.EOF }
func (noVolume) WriteAt([]byte, int64) (int, error) { return 0, syscall.ENOSPC }
func (noVolume) Sync() error                        { return nil }
func (noVolume) Size() int64                        { return 0 }
func (noVolume) Discard(int64, int64) error         { return nil }

// withFuse calls use with the path of a file that is v, in a private folder.
func withFuse(v fusefs.Volume, o fusefs.Options, use func(server *fusefs.Server, path string) error) (err error) {
	dir, err := os.MkdirTemp("", "serpcrypt-volume-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(dir)) }()
	server, err := fusefs.Mount(dir, v, o)
	if err != nil {
		return explainFuse(err)
	}
	defer func() { err = errors.Join(err, server.Unmount()) }()
	return use(server, filepath.Join(dir, fusefs.FileName))
}
