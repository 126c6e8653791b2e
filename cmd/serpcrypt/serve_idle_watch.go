package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"serpcrypt/internal/procs"

	"golang.org/x/sys/unix"
)

// fileWatch tells whether anything has been done in a mounted file system, by
// fanotify, which only root may use. It keeps nobody from unmounting it.
type fileWatch struct {
	group  int
	dir    string
	events []byte
	marked bool
}

// fileUse is what counts, with FAN_ONDIR also where it concerns a directory.
const fileUse = unix.FAN_OPEN | unix.FAN_ATTRIB | unix.FAN_CREATE | unix.FAN_DELETE | unix.FAN_MOVED_FROM | unix.FAN_MOVED_TO | unix.FAN_ONDIR

// watchFiles watches the file system mounted at dir.
func watchFiles(dir string) (*fileWatch, error) {
	// Events that hold the file open (those without FID) would keep the file
	// system busy until they are read.
	group, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("fanotify: %w", err)
	}
	w := &fileWatch{group: group, dir: dir, events: make([]byte, 4096)}
	if err := w.mark(); err != nil {
		unix.Close(group)
		return nil, err
	}
	return w, nil
}

func (w *fileWatch) mark() error {
	err := unix.FanotifyMark(w.group, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM, fileUse, unix.AT_FDCWD, w.dir)
	if err != nil {
		return fmt.Errorf("fanotify: %w", err)
	}
	w.marked = true
	return nil
}

// used reports whether there has been use since it was last called, or whether
// that is unknown. Under constant use it does not watch all the time, so that
// this costs next to nothing.
func (w *fileWatch) used() bool {
	if !w.marked {
		_ = w.mark() // unmounted, perhaps
		return true
	}
	if !w.drain() {
		return false
	}
	_ = unix.FanotifyMark(w.group, unix.FAN_MARK_FLUSH|unix.FAN_MARK_FILESYSTEM, 0, unix.AT_FDCWD, "/")
	w.marked = false
	w.drain()
	return true
}

// drain reads all events, and reports whether there was any.
func (w *fileWatch) drain() (any bool) {
	for {
		n, err := unix.Read(w.group, w.events)
		if n <= 0 && err != unix.EINTR {
			return any
		}
		any = any || n > 0
	}
}

// driverWatch tells whether programs that serve a file system had to run.
type driverWatch struct {
	drivers []procs.Process
	before  string
}

func newDriverWatch(drivers []procs.Process) *driverWatch { return &driverWatch{drivers: drivers} }

// used reports whether they have run since it was last called.
func (w *driverWatch) used() bool {
	last := w.before
	w.before = ""
	for _, d := range w.drivers {
		w.before += switches(d.PID)
	}
	return w.before != last
}

// switches returns how often each thread of a process has gone to sleep, as the
// lines that say so (proc_pid_status(5)).
func switches(pid int) (all string) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, path := range threads {
		text, _ := os.ReadFile(path) // a thread that has ended counts as nothing
		if i := bytes.Index(text, []byte("\nvoluntary_ctxt_switches:")); i >= 0 {
			line, _, _ := bytes.Cut(text[i+1:], []byte("\n"))
			all += path + string(line)
		}
	}
	return all
}
