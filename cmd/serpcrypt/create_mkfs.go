package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"serpcrypt/internal/fsprobe"
	"serpcrypt/internal/fusefs"
	"serpcrypt/volume"
)

// maker is how a mkfs is told what it has to know.
type maker struct {
	always  []string // flags
	sectors []string // flags where sectors do not have 512 bytes; %d is their size
	label   string   // flag before a label
	longest int      // label, in bytes
	plain   bool     // it has to convert labels, and knows few letters
}

// makers has the flags that keep mkfs from discarding, since that would undo the
// fill, from asking, and from giving the root folder of a user's own container to
// root. mkfs sees a file, which has no sectors: that those of the container are
// larger it has to be told. Else dm-crypt would not mount what it makes, and we
// would read, change and write back.
var makers = map[string]maker{
	"ext2":   extMaker,
	"ext3":   extMaker,
	"ext4":   extMaker,
	"xfs":    {[]string{"-q", "-f", "-K"}, []string{"-s", "size=%d"}, "-L", 12, false},
	"btrfs":  {[]string{"-q", "-f", "-K"}, nil, "-L", 255, false},      // its sectors are pages
	"f2fs":   {[]string{"-q", "-f", "-t", "0"}, nil, "-l", 511, false}, // so are its blocks
	"nilfs2": {[]string{"-q", "-f", "-K"}, nil, "-L", 80, false},       // and these
	"ntfs":   {[]string{"-q", "-F", "-f"}, []string{"-s", "%d"}, "-L", 32, true},
	"vfat":   {nil, []string{"-S", "%d"}, "-n", 11, true},
	"exfat":  {nil, nil, "-L", 11, true},
	"udf": {[]string{fmt.Sprintf("--uid=%d", os.Getuid()), fmt.Sprintf("--gid=%d", os.Getgid())},
		[]string{"--blocksize=%d"}, "-l", 30, true},
}

var extMaker = maker{
	[]string{"-q", "-F", "-E", fmt.Sprintf("nodiscard,root_owner=%d:%d", os.Getuid(), os.Getgid())},
	[]string{"-b", "%d"}, "-L", 16, false,
}

// arguments returns the flags for a container with sectors of so many bytes, and
// such a label, which may be empty.
func (m maker) arguments(sectorBytes int, label string) []string {
	args := slices.Clone(m.always)
	if sectorBytes > sectorSize {
		for _, flag := range m.sectors {
			args = append(args, strings.Replace(flag, "%d", strconv.Itoa(sectorBytes), 1))
		}
	}
	if label != "" && m.takes(label) {
		args = append(args, m.label, label)
	}
	return args
}

// takes reports whether a file system can have the label.
func (m maker) takes(label string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-"
	return len(label) <= m.longest && (!m.plain || strings.Trim(label, letters) == "")
}

// mkfsPackages are the Debian packages of programs that few systems have from
// the start.
var mkfsPackages = map[string]string{
	"ext2": "e2fsprogs", "ext3": "e2fsprogs", "ext4": "e2fsprogs", "vfat": "dosfstools", "fat": "dosfstools",
	"xfs": "xfsprogs", "btrfs": "btrfs-progs", "ntfs": "ntfs-3g", "exfat": "exfatprogs", "f2fs": "f2fs-tools",
}

// findMkfs finds the program that makes file systems called name.
func findMkfs(name string) (string, error) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return "", usagef("%q is not the name of a file system", name)
	}
	program := "mkfs." + name
	if path, err := findProgram(program); err == nil {
		return path, nil
	}
	hint := "install the package that has " + program
	if packageName := mkfsPackages[name]; packageName != "" {
		hint = hintInstall(packageName)
	}
	return "", failf(exitUsage, hint, "no program makes file system %s: %s is not installed", name, program)
}

// makeFileSystem runs mkfs, the program, over v.
func makeFileSystem(ctx context.Context, mkfs, label string, v *volume.Volume) error {
	name := strings.TrimPrefix(filepath.Base(mkfs), "mkfs.")
	m := makers[name]
	if !m.takes(label) {
		notef("the file system gets no label: %s has none like %q", name, label)
	}
	args := m.arguments(v.SectorSize(), label)
	err := withFuse(v, fusefs.Options{}, func(server *fusefs.Server, path string) error {
		return runMkfs(ctx, server, mkfs, append(args, path)...)
	})
	if err != nil {
		return err
	}
	return checkMade(name, v)
}

func runMkfs(ctx context.Context, server *fusefs.Server, mkfs string, args ...string) error {
	program := filepath.Base(mkfs)
	said, err := runOn(ctx, mkfs, args...)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return failf(exitBad, "", "%s failed (%w): %s", program, err, said)
	case server.WriteErrors() > 0:
		return failf(exitBad, "", "%d writes of %s failed", server.WriteErrors(), program)
	}
	return nil
}

// checkMade warns of a file system that will be of less use than one expects.
func checkMade(name string, v *volume.Volume) error {
	found, err := fsprobe.Probe(v)
	if err != nil {
		return err
	}
	if found == nil {
		warnf("open does not know file system %s: %s", name, hintRaw)
	}
	if name == "exfat" && v.SectorSize() > sectorSize {
		warnf("mkfs.exfat knows only sectors of %d bytes: Linux will not mount this exfat by cryptsetup; --sector-size %d makes one that it does", sectorSize, sectorSize)
	}
	return nil
}
