package main

import (
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepInherited keeps what this program was started with, beside the standard
// descriptors, from the programs that it starts: some of them stay as long as a
// container is open, and a lock in a script, or a pipe that somebody reads to its
// end, would stay with them.
func keepInherited() {
	const first = 3
	if unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// Linux has that from 5.11 on.
	open, _ := os.ReadDir("/proc/self/fd") // without it, it is only untidy
	for _, file := range open {
		if fd, err := strconv.Atoi(file.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
}
