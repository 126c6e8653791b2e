package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"serpcrypt/internal/fusefs"
)

// mkfsArguments returns the flags that keep mkfs from discarding, since that
// would undo the fill, from asking, and from giving the root folder of a
// user's own container to root.
func mkfsArguments(name string) []string {
	switch name {
	case "ext2", "ext3", "ext4":
		return []string{"-q", "-F", "-E", fmt.Sprintf("nodiscard,root_owner=%d:%d", os.Getuid(), os.Getgid())}
	case "xfs", "btrfs":
		return []string{"-q", "-f", "-K"}
	case "f2fs":
		return []string{"-q", "-f", "-t", "0"}
	case "ntfs":
		return []string{"-q", "-F", "-f"}
	}
	return nil
}

// findMkfs finds the program that makes file systems called name. An ordinary
// user's PATH often lacks the folders where such programs are.
func findMkfs(name string) (string, error) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return "", usagef("%q is not the name of a file system", name)
	}
	program := "mkfs." + name
	for _, candidate := range []string{program, "/usr/sbin/" + program, "/sbin/" + program} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", failf(exitUsage, "install the package that has "+program, "no program makes file system %s: %s is not installed", name, program)
}

// makeFileSystem runs mkfs, the program, over v, which it sees as a file
// in a private folder.
func makeFileSystem(ctx context.Context, mkfs string, v fusefs.Volume) (err error) {
	dir, err := os.MkdirTemp("", "serpcrypt-mkfs-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	server, err := fusefs.Mount(dir, v, fusefs.Options{})
	if err != nil {
		return withHint(err, hintFuse(err))
	}
	defer func() { err = errors.Join(err, server.Unmount()) }()

	name := strings.TrimPrefix(filepath.Base(mkfs), "mkfs.")
	cmd := exec.CommandContext(ctx, mkfs, append(mkfsArguments(name), filepath.Join(dir, fusefs.FileName))...)
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

// hintFuse says what FUSE is missing.
func hintFuse(err error) string {
	switch {
	case errors.Is(err, fusefs.ErrNoFuse):
		return "load the kernel's module: modprobe fuse"
	case errors.Is(err, fusefs.ErrNoHelper):
		return "install fuse3, or work as root"
	}
	return ""
}
