package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// user is a process that uses files.
type user struct {
	pid  int
	name string
}

func joinUsers(users []user) string {
	var all []string
	for _, u := range users {
		all = append(all, fmt.Sprintf("%s (%d)", u.name, u.pid))
	}
	return strings.Join(all, ", ")
}

// findUsers returns the other processes that use the file at path, or files
// below it, as far as this user can see. It only reads what /proc says and
// does not look at path itself.
func findUsers(path string) []user { return usersOf(files{path: path}) }

// files are those at a path and below, and those on a device, which are found
// also where they are seen at other paths, or no longer at any.
type files struct {
	path   string // "" for none
	device uint64 // 0 for none
}

func usersOf(f files) []user {
	var users []user
	for _, pid := range processes() {
		if pid == os.Getpid() || !f.usedBy(processFolder(pid)) {
			continue
		}
		if name := processName(pid); name != "" {
			users = append(users, user{pid, name})
		}
	}
	return users
}

func processes() []int {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var pids []int
	for _, folder := range folders {
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func processFolder(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid)) }

// processName returns "" for a process that has ended.
func processName(pid int) string {
	name, err := os.ReadFile(filepath.Join(processFolder(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

func (f files) usedBy(process string) bool {
	links := []string{"cwd", "root", "exe"}
	if open, err := os.ReadDir(filepath.Join(process, "fd")); err == nil {
		for _, file := range open {
			links = append(links, filepath.Join("fd", file.Name()))
		}
	}
	for _, link := range links {
		link = filepath.Join(process, link)
		if target, err := os.Readlink(link); err == nil && f.at(target) || f.onDevice(link) {
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

func (f files) at(path string) bool {
	return f.path != "" && (path == f.path || strings.HasPrefix(path, f.path+"/"))
}

// onDevice asks for what the kernel knows already, lest a server that hangs is
// waited for.
func (f files) onDevice(link string) bool {
	var stat unix.Statx_t
	if f.device == 0 || unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, 0, &stat) != nil {
		return false
	}
	return unix.Mkdev(stat.Dev_major, stat.Dev_minor) == f.device
}

// mapped reads a line of a process's maps:
//
//	7f0000000000-7f0000001000 r--p 00000000 07:01 12    /path
func (f files) mapped(line string) bool {
	if i := strings.IndexByte(line, '/'); i >= 0 && f.at(strings.TrimSuffix(line[i:], "\n")) {
		return true
	}
	var range_, flags, offset string
	var major, minor uint32
	n, _ := fmt.Sscanf(line, "%s %s %s %x:%x", &range_, &flags, &offset, &major, &minor)
	return f.device != 0 && n == 5 && unix.Mkdev(major, minor) == f.device
}

// swapFiles returns the files and devices that the system swaps to.
func swapFiles() []string {
	table, err := os.ReadFile("/proc/swaps")
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(table)) {
		if path, _, _ := strings.Cut(line, " "); strings.HasPrefix(path, "/") {
			files = append(files, path)
		}
	}
	return files
}
