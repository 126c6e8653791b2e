package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/fsprobe"
	"serpcrypt/internal/fusefs"
)

// The drivers for the file system inside that others need to know of.
const (
	driverKernel  = "kernel"
	driverFuse2fs = "fuse2fs"
)

// driver is a program that mounts file systems in user space.
type driver struct {
	program     string
	packageName string // in Debian, where it is another
	unpackaged  string // a system in use that has no package of it
	fileSystems []string
	options     []string
	private     string // option without which it lets other users in
	readOnly    bool   // it cannot write, or not so that one may rely on it
	nameless    bool   // the table of mounts shows what it mounts only if it is told to
	blockDevice bool   // it mounts nothing else as root, and nothing for others than root
}

// drivers are those whose options, and whether they pass syncs on, have been
// looked at. Each of them writes back all that it holds when it is unmounted.
var drivers = []driver{
	// Who may open the container may do all in it.
	{program: driverFuse2fs, fileSystems: []string{"ext2", "ext3", "ext4"}, options: []string{"fakeroot"}},
	// Without its default options, of which one lets other users in.
	{program: "ntfs-3g", fileSystems: []string{"ntfs"}, options: []string{"no_def_opts", "silent"}},
	{program: "mount.exfat-fuse", packageName: "exfat-fuse", fileSystems: []string{"exfat"}, private: "umask=077", blockDevice: true},
	// It says itself that writing is an experiment; and it does not pass syncs on.
	{program: "fusefat", fileSystems: []string{"vfat"}, readOnly: true, nameless: true},
	{program: "squashfuse", fileSystems: []string{"squashfs"}, readOnly: true, nameless: true},
	{program: "erofsfuse", unpackaged: "Debian 12", fileSystems: []string{"erofs"}, readOnly: true, nameless: true},
}

// findDriver returns the driver for a file system, or nil.
func findDriver(fileSystem string) *driver {
	for i := range drivers {
		if slices.Contains(drivers[i].fileSystems, fileSystem) {
			return &drivers[i]
		}
	}
	return nil
}

// shortName is what the kernel calls a process that runs the program.
func shortName(program string) string {
	const longest = 15
	return program[:min(len(program), longest)]
}

// chooseDriver finds out who can mount the file system inside. If nobody can,
// the volume is shown as it is.
func (o *opening) chooseDriver(found *fsprobe.Found) {
	fileSystem := found.Name
	o.state.FileSystem = fileSystem
	if !found.IsFileSystem() {
		o.showPlaintext("and no file system", "")
		return
	}
	if os.Geteuid() == 0 && kernelMounts(fileSystem) {
		o.state.Driver = driverKernel
		return
	}
	d := findDriver(fileSystem)
	hint := d.missing(o.allowOther)
	if d != nil && hint == "" {
		o.state.Driver = d.program
		return
	}
	without := ""
	if os.Geteuid() != 0 {
		without = " without root"
	}
	o.showPlaintext("which nothing here mounts"+without, hint)
}

// missing says what could be done so that d can be used, or "" if it can.
func (d *driver) missing(allowOther bool) (hint string) {
	root := os.Geteuid() == 0
	switch {
	case d == nil && root:
		return "this kernel mounts no such file system; another may"
	case d == nil, d.blockDevice && !root:
		return "work as root"
	}
	path, err := findProgram(d.program)
	if err != nil && root {
		return d.install()
	}
	if err != nil {
		return d.install() + ", or work as root"
	}
	// FUSE hides a volume from all users but its own, and so from a program that
	// becomes another.
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeSetuid != 0 && !root && !allowOther {
		return "work as root, or, as " + d.program + " does so itself, use --allow-other"
	}
	return ""
}

func (d *driver) install() string {
	hint := hintInstall(cmp.Or(d.packageName, d.program))
	if d.unpackaged != "" {
		hint += "; " + d.unpackaged + " has no package of it"
	}
	return hint
}

// showPlaintext makes this what --raw does, and says why.
func (o *opening) showPlaintext(why, hint string) {
	warnf("%s holds %s, %s: %s is its plaintext",
		o.container, o.state.FileSystem, why, filepath.Join(o.state.MountPoint, fusefs.FileName))
	if hint != "" {
		hintf("%s", hint)
	}
	if len(o.options) > 0 {
		warnf("the mount options %s have no effect", &o.options)
	}
	if o.allowOther {
		warnf("--allow-other has no effect: nobody else is let in to the whole plaintext")
	}
	o.allowOther = false
	o.state.Raw = true
}

// kernelName is what the kernel's driver for a file system is called.
func kernelName(fileSystem string) string {
	if fileSystem == "ntfs" {
		return "ntfs3" // which can write, as the one called ntfs cannot
	}
	return fileSystem
}

// kernelMounts reports whether the kernel knows a file system, and loads the
// module for it. A kernel that does not tell is thought to.
func kernelMounts(fileSystem string) bool {
	fd, err := unix.Fsopen(kernelName(fileSystem), unix.FSOPEN_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return !errors.Is(err, unix.ENODEV)
}

// programOptions are the options to have the file system at source mounted by d.
func (o *opening) programOptions(d *driver, source string) string {
	options := slices.Clone(d.options)
	if d.readOnly && !o.state.ReadOnly {
		options = append(options, "ro")
	}
	if d.nameless {
		escape := strings.NewReplacer(`\`, `\\`, `,`, `\,`)
		options = append(options, "fsname="+escape.Replace(source), "subtype="+o.state.FileSystem)
	}
	if o.allowOther {
		options = append(options, "allow_other")
	} else if d.private != "" {
		options = append(options, d.private)
	}
	return strings.Join(append(options, o.innerOptions()...), ",")
}
