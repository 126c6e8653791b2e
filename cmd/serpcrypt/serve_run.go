package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/mounts"
	"serpcrypt/internal/procs"
	"serpcrypt/volume"
)

const (
	// politeTime is how long a server that shall end waits for those who use
	// its files before it takes them away, and lastTime how long it then
	// waits for what they still write, and for them to let go. With the time to
	// close the volume, that makes less than the 10 s that a system which goes down
	// grants.
	politeTime = 4 * time.Second
	lastTime   = 2 * time.Second

	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// run serves until the volume is unmounted: by somebody else, because the file
// system on it is, or because the server shall end.
func (s *server) run(orders <-chan order, terminate <-chan os.Signal) {
	remounted, err := mounts.Watch()
	if err != nil {
		s.log.Printf("%v", err)
	}
	var everySecond <-chan time.Time
	var pause time.Duration
	var again <-chan time.Time // when to try again to unmount
	for {
		select {
		case <-s.mount.Ended():
			return
		case o, ok := <-orders:
			if !ok && (s.state.Opening || s.foreground) {
				s.shutDown()
				return
			}
			if !ok {
				orders = nil
				continue
			}
			if o.AllowDiscards {
				s.mount.AllowDiscards()
			}
			if o.Commit != nil {
				s.state = *o.Commit
				s.opened()
				everySecond = time.Tick(time.Second)
			}
		case <-everySecond:
			s.note(s.writeUsage())
			if s.idle == nil || !s.idle.expired() {
				continue
			}
			s.closeIdle()
		case <-terminate:
			s.shutDown()
			return
		case <-remounted:
		case <-again:
		}
		abandoned, err := s.abandoned()
		s.note(err)
		if abandoned && s.mount.OpenFiles() == 0 && s.mount.Unmount() == nil {
			return
		}
		if abandoned || err != nil {
			pause = min(max(firstPause, 2*pause), longestPause)
			again = time.After(pause)
		}
	}
}

// opened is called when the container is open.
func (s *server) opened() {
	state := s.state
	key := "the volume key"
	if state.KeySlot != volume.AnySlot {
		key = fmt.Sprintf("key slot %d", state.KeySlot)
	}
	s.say("opened %s by %s: %s, %s, kernel %s", state.Container, key, state.Type, state.Cipher, state.Kernel)
	what, where := state.FileSystem+" by "+state.Driver, state.MountPoint
	if state.Raw {
		what, where = "the plaintext", filepath.Join(where, fusefs.FileName)
	}
	s.say("serving %s, %s, %s, at %s", what, formatSize(state.Size), state.mode(), where)
	s.note(s.writeUsage()) // rates go from here
	s.watchIdle()
}

// abandoned reports whether the file system that was mounted from the volume
// no longer is. Files in it may still be in use, if it was unmounted lazily.
func (s *server) abandoned() (bool, error) {
	if s.state.Raw || s.state.Opening {
		return false, nil
	}
	m, err := s.entry.outerMount(s.state)
	return err == nil && m == nil, err
}

// shutDown unmounts all that there is: at once, or when those who use it have
// ended, or in the end from under them.
func (s *server) shutDown() {
	s.say("unmounting %s", s.state.MountPoint)
	if s.unmountWithin(politeTime, false) {
		return
	}
	s.log.Printf("%s is still in use", s.state.MountPoint)
	s.syncOuter()
	if s.unmountWithin(lastTime, true) {
		return
	}
	s.note(fusefs.Unmount(s.entry.fuseDir(s.state), true))
}

// unmountWithin tries until there is nothing mounted any more, or time is up.
// While the container is being opened, more may get mounted meanwhile.
func (s *server) unmountWithin(limit time.Duration, lazy bool) (done bool) {
	pause := firstPause
	for deadline := time.Now().Add(limit); ; pause = min(2*pause, longestPause/5) {
		if !s.state.Raw {
			if err := s.entry.unmountOuterApart(context.Background(), s.state, lazy); !errors.Is(err, unix.EBUSY) {
				s.note(err)
			}
		}
		if s.mount.OpenFiles() == 0 && s.mount.Unmount() == nil {
			return true
		}
		select {
		case <-s.mount.Ended():
			return true
		case <-time.After(pause):
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// syncOuter has the file system that cannot be unmounted write what it holds
// back: the kernel's by a sync, that of a program by its end.
func (s *server) syncOuter() {
	m, err := s.entry.outerMount(s.state)
	if err != nil || m == nil || s.state.Raw {
		s.note(err)
		return
	}
	if s.state.Driver != driverKernel {
		for _, p := range procs.Using(s.entry.rawFile()) {
			if p.Name == shortName(s.state.Driver) {
				s.note(syscall.Kill(p.PID, syscall.SIGTERM))
			}
		}
		return
	}
	late := fmt.Errorf("%s does not get synced in time", s.state.MountPoint)
	ctx, cancel := context.WithTimeoutCause(context.Background(), lastTime, late)
	defer cancel()
	what := "--"
	if !mounts.IsSeen(m) {
		what = "--all" // it is covered by another, so there is no path to it
	}
	_, err = runApart(ctx, syncName, what, s.state.MountPoint)
	s.note(err)
}

// say logs what is as it should be.
func (s *server) say(format string, a ...any) {
	if !s.quiet {
		s.log.Printf(format, a...)
	}
}

// note logs what cannot be helped.
func (s *server) note(err error) {
	if err != nil {
		s.log.Printf("%v", err)
	}
}

// syncFileSystem writes back all that the file system mounted at dir holds. The
// server of its volume must have another process do this, see apartCommands.
func syncFileSystem(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Syncfs(fd)
}
