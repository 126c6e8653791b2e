package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"serpcrypt/internal/mounts"
	"serpcrypt/internal/procs"

	"golang.org/x/sys/unix"
)

// idleClock tells when there has been no use for as long as --idle-timeout says.
type idleClock struct {
	limit time.Duration
	now   func() time.Duration // any clock that never goes back
	used  func() bool          // whether there has been use since it was last asked
	since time.Duration        // the last use
}

func newIdleClock(limit time.Duration, now func() time.Duration, used func() bool) *idleClock {
	used() // what was before is none
	return &idleClock{limit: limit, now: now, used: used, since: now()}
}

func (c *idleClock) expired() bool {
	now := c.now()
	if c.used() {
		c.since = now
	}
	return now-c.since >= c.limit
}

func (c *idleClock) restart() { c.since = c.now() }

// sinceBoot goes on while the computer sleeps: whoever takes it away in its bag
// does not use it.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0 // only a kernel before 2.6.39 has none; then it never expires
	}
	return time.Duration(t.Nano())
}

// watchIdle starts the clock of --idle-timeout, if it was asked for.
func (s *server) watchIdle() {
	if s.state.IdleLimit > 0 {
		s.idle = newIdleClock(seconds(s.state.IdleLimit), sinceBoot, s.watchUse())
	}
}

// watchUse chooses what counts as use. Open files, working directories and
// mounts need no watching: while there are any, nothing can be unmounted.
//
// With --raw it is the requests to the volume. Under a file system these show
// both too little, as it has a cache, and too much, as it writes by itself. So
// there it is what is done in it: files opened, made, moved and removed, of
// which the kernel tells root; or else that its driver had to run at all.
func (s *server) watchUse() func() bool {
	switch s.state.Driver {
	case "":
		return s.requested()
	case driverKernel:
		watch, err := watchFiles(s.state.MountPoint)
		if err != nil {
			s.note(fmt.Errorf("what writes by itself counts as use: %w", err))
			return s.requested()
		}
		return watch.used
	}
	drivers := procs.Using(s.entry.rawFile())
	if len(drivers) == 0 { // they are not to be seen
		return s.requested()
	}
	return newDriverWatch(drivers).used
}

// requested reports whether there were requests since it was last asked.
func (s *server) requested() func() bool {
	var before int64
	return func() bool {
		last := before
		before = s.mount.Counts().Requests
		return before != last
	}
}

// closeIdle unmounts what nobody uses, as close does; run sees that and ends.
func (s *server) closeIdle() {
	if err := s.unmountIdle(); err != nil {
		if !errors.Is(err, unix.EBUSY) {
			s.note(err)
		}
		s.idle.restart()
		return
	}
	s.say("%s has not been used for %v: closing", s.state.MountPoint, s.idle.limit)
	s.idle = nil
}

func (s *server) unmountIdle() error {
	m, err := s.entry.outerMount(s.state)
	if err != nil || m == nil {
		return err
	}
	if !mounts.IsSeen(m) {
		return errors.Join(err, errCovered)
	}
	if places, err := mounts.Like(m); err != nil || len(places) > 1 {
		return errors.Join(err, fmt.Errorf("it is seen at %d places: %w", len(places), unix.EBUSY))
	}
	late := fmt.Errorf("%s does not get synced in time: %w", s.state.MountPoint, unix.EBUSY)
	ctx, cancel := context.WithTimeoutCause(context.Background(), lastTime, late)
	defer cancel()
	var syncErr error
	switch {
	case s.state.Driver == driverKernel:
		// The kernel tells of failed writes here, and not when it unmounts.
		_, syncErr = runApart(ctx, syncName, "--", s.state.MountPoint)
	case s.state.Driver != "" && s.mount.OpenFiles() == 0:
		syncErr = fmt.Errorf("%s died", s.state.Driver)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.entry.unmountOuterApart(context.Background(), s.state, false); err != nil {
		return err
	}
	if syncErr != nil {
		s.lost = fmt.Errorf("the last changes are not on the disk: %w", syncErr)
	}
	return nil
}
