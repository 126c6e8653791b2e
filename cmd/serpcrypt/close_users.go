package main

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/loopdev"
	"serpcrypt/internal/mounts"
	"serpcrypt/internal/procs"
)

// usersText names who uses files, as far as this user can see.
func usersText(f procs.Files) string {
	var who []string
	if users := f.Users(); len(users) > 0 {
		who = append(who, procs.Join(users))
	}
	if below, err := mounts.Below(f.Path); err == nil {
		for _, m := range below {
			who = append(who, "the mount at "+m)
		}
	}
	if devices, err := loopdev.FindBelow(f.Path); err == nil {
		for _, device := range devices {
			who = append(who, "the loop device "+device)
		}
	}
	for _, path := range swapFiles() {
		if f.Contains(path) {
			who = append(who, "the swap space "+path)
		}
	}
	if len(who) == 0 {
		return ""
	}
	return " by " + strings.Join(who, ", ")
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

func filesOf(m *mounts.Mount) procs.Files {
	return procs.Files{Path: m.Mountpoint, Device: unix.Mkdev(uint32(m.Major), uint32(m.Minor))}
}

// heldFiles are those that keep the server from its end after what people see
// has been unmounted.
func (f openContainer) heldFiles() procs.Files {
	held := procs.Files{Path: f.entry.fuseDir(f.state)}
	var stat unix.Stat_t
	if f.state.Loop != "" && unix.Stat(f.state.Loop, &stat) == nil {
		held.Device = uint64(stat.Rdev)
	}
	return held
}
