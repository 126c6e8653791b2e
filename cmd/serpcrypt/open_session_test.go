package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/loopdev"
	"serpcrypt/internal/mounts"
	"serpcrypt/internal/procs"
)

// openSession is a folder to run the program in: with a runtime folder of its
// own, a file key with a passphrase, and a mount point box.
type openSession struct {
	t   *testing.T
	dir string
}

func newOpenSession(t *testing.T) *openSession {
	t.Helper()
	needMounts(t)
	s := &openSession{t, openFolder(t)}
	if err := os.WriteFile(s.path("key"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path("box"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(runtimeDirEnv, s.path("run"))
	return s
}

func (s *openSession) path(name string) string { return filepath.Join(s.dir, name) }

// command is a program in the folder.
func (s *openSession) command(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.dir
	return cmd
}

// run runs a command that ends well.
func (s *openSession) run(args ...string) {
	s.t.Helper()
	cmd := s.command(args...)
	if output, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", cmd.Args, err, output)
	}
}

func (s *openSession) outcome(args ...string) outcome {
	s.t.Helper()
	return runCommand(s.t, s.command(args...))
}

// hangLimit is how long anything may take that must not hang.
const hangLimit = 2 * time.Minute

// ends runs a command that ends with an exit code and never hangs.
func (s *openSession) ends(code int, args ...string) outcome {
	s.t.Helper()
	cmd := s.command(args...)
	cmd.WaitDelay = time.Second
	hangs := time.AfterFunc(hangLimit, func() {
		cmd.Process.Kill()
		s.abortRequests()
	})
	o := runCommand(s.t, cmd)
	if !hangs.Stop() {
		s.t.Fatalf("%v hangs\n%s", args, o.stderr)
	}
	if o.code != code {
		s.t.Fatalf("%v: exit code %d, want %d\n%s%s", args, o.code, code, o.stdout, o.stderr)
	}
	return o
}

// eventually runs a command until it succeeds; for some time the container may be
// in use.
func (s *openSession) eventually(args ...string) {
	s.t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		o := s.outcome(args...)
		if o.code == 0 {
			return
		}
		if o.code != exitBusy || time.Since(start) > hangLimit {
			s.t.Fatalf("%v: exit code %d\n%s", args, o.code, o.stderr)
		}
	}
}

// start runs a program in the background, until the test is done at the latest.
func (s *openSession) start(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := s.command(args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

// within runs do, which must not hang.
func (s *openSession) within(what string, do func() error) error {
	s.t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(hangLimit):
		s.abortRequests()
		s.t.Fatalf("%s hangs", what)
		return nil
	}
}

// abortRequests fails all that wait for a server, which not even SIGKILL may reach.
func (s *openSession) abortRequests() {
	below, err := mounts.Below(s.dir)
	if err != nil {
		s.t.Error(err)
	}
	for _, m := range below {
		_ = unix.Unmount(m, unix.MNT_FORCE) // it may stay mounted, but with no server
	}
}

// waitFor waits until there is a file.
func (s *openSession) waitFor(name string) {
	s.t.Helper()
	for range 1000 {
		if exists(s.path(name)) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("%s does not appear", name)
}

// openFile opens a file of the session, until the test ends or it is closed.
func (s *openSession) openFile(name string) *os.File {
	s.t.Helper()
	file, err := os.OpenFile(s.path(name), os.O_RDWR, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { file.Close() })
	return file
}

// theOpen returns the only container that is open.
func (s *openSession) theOpen() openContainer {
	s.t.Helper()
	found, err := findOpen()
	if err != nil || len(found) != 1 {
		s.t.Fatalf("open are %+v, %v", found, err)
	}
	return found[0]
}

// killServer kills the server of the only container that is open.
func (s *openSession) killServer() {
	s.t.Helper()
	f := s.theOpen()
	if err := syscall.Kill(f.state.PID, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	for start := time.Now(); f.entry.alive(); time.Sleep(time.Millisecond) {
		if time.Since(start) > hangLimit {
			s.t.Fatal("the server cannot be killed")
		}
	}
}

// server returns the id of the server of the only container that is open.
func (s *openSession) server() int {
	s.t.Helper()
	f := s.theOpen()
	if !f.alive {
		s.t.Fatalf("it is dead: %+v", f)
	}
	return f.state.PID
}

// nothingLeft checks that nothing of ours is left, at once.
func (s *openSession) nothingLeft() {
	s.t.Helper()
	if left := leftovers(s.dir); len(left) > 0 {
		s.t.Errorf("left behind: %s", strings.Join(left, ", "))
	}
}

// clean checks that nothing of ours is left in the end, but the mounts at those
// places.
func (s *openSession) clean(except ...string) {
	s.t.Helper()
	var left []string
	for range 100 { // a server that has let go of its lock may still be ending
		left = slices.DeleteFunc(leftovers(s.dir), func(l string) bool {
			return slices.ContainsFunc(except, func(place string) bool { return l == "the mount at "+s.path(place) })
		})
		if len(left) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Fatalf("left behind: %s", strings.Join(left, ", "))
}

// leftovers lists what of ours is left in dir: mounts, loop devices, servers.
func leftovers(dir string) (left []string) {
	below, err := mounts.Below(dir)
	if err != nil {
		return []string{err.Error()}
	}
	for _, m := range below {
		left = append(left, "the mount at "+m)
	}
	devices, err := loopdev.FindBelow(dir)
	if err != nil {
		return []string{err.Error()}
	}
	for _, device := range devices {
		left = append(left, "the loop device "+device)
	}
	entries, _ := filepath.Glob(filepath.Join(dir, "run", "*", "*"))
	if top, _ := filepath.Glob(filepath.Join(dir, "*", "run", "*", "*")); len(top) > 0 {
		entries = append(entries, top...)
	}
	left = append(left, entries...)
	if servers := procs.Using(filepath.Join(dir, "run")); len(servers) > 0 {
		left = append(left, procs.Join(servers))
	}
	return left
}
