package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/child"
	"serpcrypt/internal/procs"
	"serpcrypt/internal/skip"
)

func TestIdleClock(t *testing.T) {
	var now time.Duration
	used := true // before it is watched
	c := newIdleClock(10*time.Second, func() time.Duration { return now }, func() bool {
		was := used
		used = false
		return was
	})
	for _, step := range []struct {
		at            time.Duration
		used, restart bool
		want          bool
	}{
		{at: 0},
		{at: 9 * time.Second},
		{at: 9500 * time.Millisecond, used: true},
		{at: 19 * time.Second},
		{at: 19500 * time.Millisecond, want: true},
		{at: 20 * time.Second, want: true},
		{at: 20 * time.Second, restart: true},
		{at: 29 * time.Second},
		{at: 30 * time.Second, used: true},
		{at: 8 * time.Hour, want: true}, // the computer slept
	} {
		now, used = step.at, step.used
		if step.restart {
			c.restart()
		}
		if got := c.expired(); got != step.want {
			t.Errorf("%v: expired is %t, want %t", step.at, got, step.want)
		}
	}
}

func TestSinceBoot(t *testing.T) {
	before := sinceBoot()
	time.Sleep(time.Millisecond)
	if after := sinceBoot(); before <= 0 || after <= before {
		t.Errorf("%v, then %v", before, after)
	}
}

func TestFileWatch(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root may watch a file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		skip.Skip(t, "cannot mount: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(path("a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("a/b/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := watchFiles(dir)
	if err != nil {
		skip.Skip(t, err.Error())
	}
	defer unix.Close(w.group)
	calm := func(when string) {
		t.Helper()
		for round := range 3 {
			if used := w.used(); used && round > 1 {
				t.Errorf("%s, it is in use", when)
			}
		}
	}
	calm("at first")
	for _, use := range []struct {
		name string
		do   func() error
	}{
		{"read", func() error { _, err := os.ReadFile(path("a/b/file")); return err }},
		{"list", func() error { _, err := os.ReadDir(path("a")); return err }},
		{"make", func() error { return os.Mkdir(path("a/new"), 0o700) }},
		{"link", func() error { return os.Link(path("a/b/file"), path("a/link")) }},
		{"rename", func() error { return os.Rename(path("a/b"), path("a/c")) }},
		{"mode", func() error { return os.Chmod(path("a"), 0o755) }},
		{"remove", func() error { return os.Remove(path("a/new")) }},
	} {
		if err := use.do(); err != nil {
			t.Fatalf("%s: %v", use.name, err)
		}
		if !w.used() {
			t.Errorf("%s is no use", use.name)
		}
		calm("after " + use.name)
	}
	if err := unix.Statfs(dir, new(unix.Statfs_t)); err != nil {
		t.Fatal(err)
	}
	if w.used() {
		t.Error("to ask for free space is use")
	}
	if err := os.Remove(path("a/link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Errorf("what happened keeps it busy: %v", err)
	}
}

func TestDriverWatch(t *testing.T) {
	cat := child.Start(t, exec.Command("cat"), "ready\n", "ready")
	use := func() {
		t.Helper()
		cat.Ask("x\n", "x")
		time.Sleep(100 * time.Millisecond) // until it waits again
	}
	w := newDriverWatch([]procs.Process{{PID: cat.Process.Pid, Name: "cat"}})
	use()
	w.used()
	for range 2 {
		if w.used() {
			t.Error("while it waits, it is in use")
		}
	}
	use()
	if !w.used() {
		t.Error("that it has run is no use")
	}
}
