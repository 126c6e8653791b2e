// Package procs tells which processes use files, by what /proc shows to this
// user. It does not look at the files, as whoever serves them may be dead or stuck.
package procs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is a process that runs.
type Process struct {
	PID  int
	Name string // as the kernel has it: the first 15 bytes of its program's
}

// Join names processes for people: "cat (12), sh (13)".
func Join(processes []Process) string {
	var all []string
	for _, p := range processes {
		all = append(all, fmt.Sprintf("%s (%d)", p.Name, p.PID))
	}
	return strings.Join(all, ", ")
}

// Files are those at a path and below, and those on a device, which are found
// also where they are seen at other paths, or no longer at any.
type Files struct {
	Path   string // absolute; "" for none
	Device uint64 // its number; 0 for none
}

// Using returns the other processes that use the file at path, or files below it.
func Using(path string) []Process { return Files{Path: path}.Users() }

// Users returns the other processes that use any of the files.
func (f Files) Users() []Process {
	var users []Process
	for _, pid := range IDs() {
		if pid == os.Getpid() || !f.usedBy(folder(pid)) {
			continue
		}
		if name := Name(pid); name != "" {
			users = append(users, Process{pid, name})
		}
	}
	return users
}

// IDs returns the ids of all processes.
func IDs() []int {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var pids []int
	for _, path := range folders {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func folder(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid)) }

// Name returns "" for a process that has ended.
func Name(pid int) string {
	name, err := os.ReadFile(filepath.Join(folder(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

func (f Files) usedBy(process string) bool {
	links := []string{"cwd", "root", "exe"}
	if open, err := os.ReadDir(filepath.Join(process, "fd")); err == nil {
		for _, file := range open {
			links = append(links, filepath.Join("fd", file.Name()))
		}
	}
	for _, link := range links {
		link = filepath.Join(process, link)
		if target, err := os.Readlink(link); err == nil && f.Contains(target) || f.onDevice(link) {
			return true
		}
	}
	maps, err := os.ReadFile(filepath.Join(process, "maps"))
	if err != nil {
		return false
	}
	for line := range bytes.Lines(maps) {
		if f.mapped(string(line)) {
			return true
		}
	}
	return false
}

// Contains reports whether path is that of the files, or below it.
func (f Files) Contains(path string) bool {
	return f.Path != "" && (path == f.Path || strings.HasPrefix(path, f.Path+"/"))
}

// onDevice asks for what the kernel knows already, lest a server that hangs is
// waited for.
func (f Files) onDevice(link string) bool {
	var stat unix.Statx_t
	if f.Device == 0 || unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, 0, &stat) != nil {
		return false
	}
	return unix.Mkdev(stat.Dev_major, stat.Dev_minor) == f.Device
}

// mapped reads a line of a process's maps:
//
//	7f0000000000-7f0000001000 r--p 00000000 07:01 12    /path
func (f Files) mapped(line string) bool {
	if i := strings.IndexByte(line, '/'); i >= 0 && f.Contains(strings.TrimSuffix(line[i:], "\n")) {
		return true
	}
	var range_, flags, offset string
	var major, minor uint32
	n, _ := fmt.Sscanf(line, "%s %s %s %x:%x", &range_, &flags, &offset, &major, &minor)
	return f.Device != 0 && n == 5 && unix.Mkdev(major, minor) == f.Device
}
