package kdf

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// MemoryError says that a derivation takes more memory than there is.
type MemoryError struct{ Need, Available int64 } // bytes

func (e *MemoryError) Error() string {
	return fmt.Sprintf("kdf: the derivation takes %s of memory, %s are available", mebibytes(e.Need), mebibytes(e.Available))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// checkMemory returns a *MemoryError if so many bytes cannot be had. It is asked
// before, since a process that takes too much is killed.
func checkMemory(need int64) error {
	available := min(availableMemory(os.DirFS("/")), mappable(need, canMap))
	if need > available {
		return &MemoryError{need, available}
	}
	return nil
}

// availableMemory returns how many bytes this process can fill without anything
// being swapped out, which would be slow and leave traces on the disk: what the
// system has, and what each of the process's control groups has left. root is
// the root of the file system. What cannot be found out is no limit.
func availableMemory(root fs.FS) int64 {
	available := int64(math.MaxInt64)
	if kibibytes, ok := readField(root, "proc/meminfo", "MemAvailable:"); ok && kibibytes <= math.MaxInt64>>10 {
		available = kibibytes << 10
	}
	for _, group := range memoryGroups(root) {
		available = min(available, group.left(root))
	}
	return available
}

// memoryGroup is a control group that can limit the memory.
type memoryGroup struct {
	folder string // in the root
	files  groupFiles
}

// groupFiles are the names that a version of control groups has for the same
// things.
type groupFiles struct {
	limit, usage string
	cached       []string // fields of memory.stat: pages that can be dropped
}

var (
	// Documentation/admin-guide/cgroup-v1/memory.rst of Linux.
	groupFiles1 = groupFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "total_active_file"}}
	// Documentation/admin-guide/cgroup-v2.rst.
	groupFiles2 = groupFiles{"memory.max", "memory.current", []string{"inactive_file", "active_file"}}
)

// left returns how many bytes the group may still take.
func (g memoryGroup) left(root fs.FS) int64 {
	limit, limited := readNumber(root, path.Join(g.folder, g.files.limit)) // v2 says "max" for none
	usage, known := readNumber(root, path.Join(g.folder, g.files.usage))
	if !limited || !known {
		return math.MaxInt64
	}
	for _, name := range g.files.cached {
		cached, _ := readField(root, path.Join(g.folder, "memory.stat"), name)
		usage -= min(cached, usage)
	}
	return limit - min(usage, limit)
}

// memoryGroups returns the groups of this process, with all that they lie in.
func memoryGroups(root fs.FS) []memoryGroup {
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return nil
	}
	hierarchies, err := mountinfo.GetMountsFromReader(bytes.NewReader(mounts), mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil
	}
	var groups []memoryGroup
	for _, mount := range hierarchies {
		files, controller := groupFiles2, ""
		if mount.FSType == "cgroup" {
			files, controller = groupFiles1, "memory"
			if !slices.Contains(strings.Split(mount.VFSOptions, ","), controller) {
				continue
			}
		}
		inside, ok := groupPath(root, controller)
		if !ok {
			continue
		}
		// A container sees the tree from its own group on.
		if rest, below := strings.CutPrefix(inside, strings.TrimSuffix(mount.Root, "/")+"/"); below {
			inside = rest
		} else {
			inside = ""
		}
		top := strings.TrimPrefix(mount.Mountpoint, "/")
		for folder := path.Join(top, inside); ; folder = path.Dir(folder) {
			groups = append(groups, memoryGroup{folder, files})
			if folder == top || len(folder) < len(top) {
				break
			}
		}
	}
	return groups
}

// groupPath returns the process's place in the tree of a controller: of version
// 1, or that of version 2 for "".
func groupPath(root fs.FS, controller string) (string, bool) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // number, controllers, path
		if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
			return path.Clean("/" + fields[2]), true
		}
	}
	return "", false
}

// readNumber returns the number that a file consists of.
func readNumber(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil && n >= 0
}

// readField returns the number behind a name at the start of a line.
func readField(root fs.FS, file, name string) (int64, bool) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) >= 2 && fields[0] == name {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n, err == nil && n >= 0
		}
	}
	return 0, false
}

// mappable returns n, if so many bytes can be mapped, or about how many can be.
// The Go runtime ends the process when it cannot map memory, be it for a limit
// of the process, for the system's accounting, or for want of addresses.
func mappable(n int64, canMap func(size int64) bool) int64 {
	const steps = 64
	if canMap(n + mappedBeside) {
		return n
	}
	for i := int64(steps - 1); i > 0; i-- {
		if part := n / steps * i; canMap(part + mappedBeside) {
			return part
		}
	}
	return 0
}

// mappedBeside is what the runtime maps more than it is asked for: it takes
// addresses in units as large as this (heapArenaBytes).
const mappedBeside = 64 << 20

func canMap(size int64) bool {
	if size > math.MaxInt {
		return false
	}
	pages, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	// It fails only for a wrong argument.
	_ = unix.Munmap(pages)
	return true
}
