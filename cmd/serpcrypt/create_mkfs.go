package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"serpcrypt/internal/fusefs"
	"serpcrypt/volume"
)

// mkfsArguments returns the flags that keep mkfs from discarding, since that
// would undo the fill, from asking, and from giving the root folder of a
// user's own container to root. mkfs sees a file, which has no sectors: that
// those of the container have sectorSize bytes it has to be told. Else dm-crypt
// would not mount what it makes, and we would read, change and write back.
func mkfsArguments(name string, sectorSize int) []string {
	size := strconv.Itoa(sectorSize)
	var args, sectors []string
	switch name {
	case "ext2", "ext3", "ext4":
		args = []string{"-q", "-F", "-E", fmt.Sprintf("nodiscard,root_owner=%d:%d", os.Getuid(), os.Getgid())}
		sectors = []string{"-b", size}
	case "xfs":
		args = []string{"-q", "-f", "-K"}
		sectors = []string{"-s", "size=" + size}
	case "btrfs":
		args = []string{"-q", "-f", "-K"}
	case "f2fs":
		args = []string{"-q", "-f", "-t", "0"}
	case "ntfs":
		args = []string{"-q", "-F", "-f"}
		sectors = []string{"-s", size}
	case "vfat":
		sectors = []string{"-S", size}
	}
	if sectorSize > commonSectorSize {
		args = append(args, sectors...)
	}
	return args
}

// commonSectorSize is what all programs take for granted, in bytes.
const commonSectorSize = 512

// findMkfs finds the program that makes file systems called name.
func findMkfs(name string) (string, error) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return "", usagef("%q is not the name of a file system", name)
	}
	program := "mkfs." + name
	if path, err := findProgram(program); err == nil {
		return path, nil
	}
	return "", failf(exitUsage, "install the package that has "+program, "no program makes file system %s: %s is not installed", name, program)
}

// checkFuse mounts for a moment, so that what is missing for mkfs is known
// before the payload is filled, and not an hour later.
func checkFuse() error {
	return withFuse(noVolume{}, func(*fusefs.Server, string) error { return nil })
}

// noVolume has no content.
type noVolume struct{}

func (noVolume) ReadAt([]byte, int64) (int, error)  { return 0, io.EOF }
func (noVolume) WriteAt([]byte, int64) (int, error) { return 0, syscall.ENOSPC }
func (noVolume) Sync() error                        { return nil }
func (noVolume) Size() int64                        { return 0 }
func (noVolume) Discard(int64, int64) error         { return nil }

// withFuse calls use with the path of a file that is v, in a private folder.
func withFuse(v fusefs.Volume, use func(server *fusefs.Server, path string) error) (err error) {
	dir, err := os.MkdirTemp("", "serpcrypt-mkfs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(dir)) }()
	server, err := fusefs.Mount(dir, v, fusefs.Options{})
	if err != nil {
		return explainFuse(err)
	}
	defer func() { err = errors.Join(err, server.Unmount()) }()
	return use(server, filepath.Join(dir, fusefs.FileName))
}

// makeFileSystem runs mkfs, the program, over v.
func makeFileSystem(ctx context.Context, mkfs string, v *volume.Volume) error {
	return withFuse(v, func(server *fusefs.Server, path string) error {
		return runMkfs(ctx, mkfs, v.SectorSize(), server, path)
	})
}

func runMkfs(ctx context.Context, mkfs string, sectorSize int, server *fusefs.Server, path string) error {
	name := strings.TrimPrefix(filepath.Base(mkfs), "mkfs.")
	cmd := exec.CommandContext(ctx, mkfs, append(mkfsArguments(name, sectorSize), path)...)
	// In a process group of its own: Ctrl-C reaches it through the context only.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	debugf("run %s", strings.Join(cmd.Args, " "))
	output, err := cmd.CombinedOutput()
	if len(output) > 0 {
		debugf("%s says: %s", filepath.Base(mkfs), strings.TrimSpace(string(output)))
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return failf(exitBad, "", "%s failed (%w): %s", filepath.Base(mkfs), err, strings.TrimSpace(string(output)))
	case server.WriteErrors() > 0:
		return failf(exitBad, "", "%d writes of %s failed", server.WriteErrors(), filepath.Base(mkfs))
	}
	return nil
}
