package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"serpcrypt/internal/fsprobe"
	"serpcrypt/internal/fusefs"
	"serpcrypt/volume"
)

// checker is a program that looks for faults in file systems, and ends with 0 if
// it finds none.
type checker struct {
	program     string
	packageName string // in Debian
	fileSystems []string
	args        []string // so that it writes nothing, and asks nothing
	unreplayed  string   // what it says if it has looked past changes in a journal
	complains   string   // what it says with faults, if it may end with 0 all the same
}

var checkers = []checker{
	{"e2fsck", "e2fsprogs", []string{"ext2", "ext3", "ext4"}, []string{"-f", "-n"}, "skipping journal recovery", ""},
	{"xfs_repair", "xfsprogs", []string{"xfs"}, []string{"-f", "-n"}, "valuable metadata changes in a log", ""},
	// It would look for where the volume is mounted, and fail over the mounts of
	// other users.
	{"btrfs", "btrfs-progs", []string{"btrfs"}, []string{"check", "--readonly", "--force"}, "", ""},
	{"fsck.vfat", "dosfstools", []string{"vfat"}, []string{"-n"}, "", ""},
	{"fsck.exfat", "exfatprogs", []string{"exfat"}, []string{"-n"}, "", ""},
	{"ntfsfix", "ntfs-3g", []string{"ntfs"}, []string{"-n"}, "", ""},
	{"fsck.f2fs", "f2fs-tools", []string{"f2fs"}, []string{"--dry-run"}, "", ""},
	{"fsck.erofs", "erofs-utils", []string{"erofs"}, nil, "", "<E> "},
}

// fsck is a checker and the file system that it is for.
type fsck struct {
	checker
	path       string // of the program
	fileSystem string
}

// newFsck finds out what is in a volume and who checks it.
func newFsck(v *volume.Volume, container string) (*fsck, error) {
	found, err := fsprobe.Probe(v)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, failf(exitBad, "", "%s holds no file system that is known, so --fsck has nothing to check", container)
	}
	i := slices.IndexFunc(checkers, func(c checker) bool { return slices.Contains(c.fileSystems, found.Name) })
	if i < 0 {
		return nil, failf(exitBad, "verify without --fsck checks the rest", "no program is known that checks %s, which %s holds", found.Name, container)
	}
	f := &fsck{checker: checkers[i], fileSystem: found.Name}
	if f.path, err = findProgram(f.program); err != nil {
		return nil, failf(exitBad, hintInstall(f.packageName), "%s, which checks %s, is not installed", f.program, found.Name)
	}
	return f, checkFuse()
}

// fsckReport is what a checker has found.
type fsckReport struct {
	fsck
	exitCode int
	said     string
	faulty   bool
	journal  bool // holds changes that have not been looked at
}

// run has v checked, which the program sees as a file, by FUSE: no plaintext gets
// to any disk.
func (f *fsck) run(ctx context.Context, v *volume.Volume) (*fsckReport, error) {
	r := &fsckReport{fsck: *f}
	err := withFuse(v, fusefs.Options{ReadOnly: true}, func(_ *fusefs.Server, path string) (err error) {
		r.said, err = runOn(ctx, f.path, append(slices.Clone(f.args), path)...)
		r.said = strings.ReplaceAll(r.said, path, fusefs.FileName)
		return err
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		r.exitCode = exit.ExitCode()
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", f.program, err)
	}
	r.faulty = r.exitCode != 0 || f.complains != "" && strings.Contains(r.said, f.complains)
	r.journal = f.unreplayed != "" && strings.Contains(r.said, f.unreplayed)
	return r, nil
}

func (r *fsckReport) result() volume.Result {
	if r.faulty {
		return volume.Failed
	}
	return volume.Passed
}

// command is how a person would call the program.
func (f *fsck) command() string { return strings.Join(append([]string{f.program}, f.args...), " ") }

// show prints the result, and what the program said if that was bad.
func (r *fsckReport) show() {
	about := ""
	if r.journal {
		about = ", the changes in the journal left out"
	}
	infof("  %-12s %-8s %s by %s%s", "fsck", r.result(), r.fileSystem, r.command(), about)
	if !r.faulty {
		return
	}
	const most = 50
	lines := strings.Split(r.said, "\n")
	for _, line := range lines[:min(len(lines), most)] {
		infof("      %s", printable(line))
	}
	if more := len(lines) - most; more > 0 {
		infof("      ... and %d more lines", more)
	}
}

// verdict is nil if no fault was found.
func (r *fsckReport) verdict(container string) error {
	switch {
	case !r.faulty:
		return nil
	case r.journal:
		return failf(exitBad, "open and close it, which replays the journal, then verify it again",
			"%s finds faults in the %s in %s, which was not closed properly: perhaps they are only that its journal has not been replayed", r.program, r.fileSystem, container)
	}
	return failf(exitBad, hintRaw+" and have it repaired, after a copy of the container",
		"%s finds faults in the %s in %s (exit code %d)", r.program, r.fileSystem, container, r.exitCode)
}

// fsckDocument is the part of --json about it.
type fsckDocument struct {
	Command  string        `json:"command"`
	Result   volume.Result `json:"result"`
	ExitCode int           `json:"exit_code"`
	Journal  bool          `json:"journal_not_replayed"`
	Output   string        `json:"output"`
}

func (r *fsckReport) document() *fsckDocument {
	return &fsckDocument{r.command(), r.result(), r.exitCode, r.journal, r.said}
}
