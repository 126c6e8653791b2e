package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"serpcrypt/internal/mounts"

	"golang.org/x/sys/unix"
)

// patience is how long who asks about what is open waits for an answer of those who
// may be stuck.
const patience = 3 * time.Second

// answerOf asks what may never be answered, and then gives up.
func answerOf[T any](ask func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answers := make(chan T, 1)
	err := untilDone(ctx, func() error {
		answer, err := ask()
		answers <- answer
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return <-answers, nil
}

// space is how full a file system is.
type space struct {
	Used int64 `json:"used_bytes"`
	Free int64 `json:"free_bytes"` // for ordinary users
}

func spaceAt(dir string) (space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return space{}, fmt.Errorf("free space at %s: %w", dir, err)
	}
	unit := int64(s.Frsize)
	return space{Used: int64(s.Blocks-s.Bfree) * unit, Free: int64(s.Bavail) * unit}, nil
}

// innerSpace asks the file system in an open container how full it is, or
// returns nil.
func (f openContainer) innerSpace() *space {
	if f.state.Raw || f.health() != "open" {
		return nil
	}
	if f.state.Driver != driverKernel && f.state.IdleLimit > 0 {
		return nil // for its driver it would be use
	}
	m, err := f.entry.outerMount(f.state)
	if err != nil || m == nil {
		return nil
	}
	if !mounts.IsSeen(m) {
		return nil // it is covered by another
	}
	late := fmt.Errorf("%s does not tell its free space in time", f.state.MountPoint)
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, late)
	defer cancel()
	text, err := runApart(ctx, spaceName, "--", f.state.MountPoint)
	found := new(space)
	if err == nil {
		err = json.Unmarshal(text, found)
	}
	if err != nil {
		debugf("%v", err)
		return nil
	}
	return found
}

// diskBytes returns what the container takes of its disk, or nil if that is
// unknown or, as with a block device, makes no sense.
func (f openContainer) diskBytes() *int64 {
	s, err := answerOf(func() (s unix.Stat_t, err error) {
		err = unix.Stat(f.state.Container, &s)
		return s, err
	})
	if err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	bytes := int64(s.Blocks) * sectorSize // stat(2): in units of 512 bytes
	return &bytes
}
