package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

const (
	spaceName = "space"

	// patience is how long status waits for an answer about free space.
	patience = 3 * time.Second
)

// space is how full a file system is.
type space struct {
	Used int64 `json:"used_bytes"`
	Free int64 `json:"free_bytes"` // for ordinary users
}

// spaceCommand is what "status" runs to ask a file system. It is not for people.
func spaceCommand() *cli.Command {
	return &cli.Command{
		Name:   spaceName,
		Hidden: true,
		Usage:  "say how full a file system is (started by status)",
		Action: func(c *cli.Context) error {
			args, err := exactArgs(c, "MOUNTPOINT")
			if err != nil {
				return err
			}
			found, err := spaceAt(args[0])
			if err != nil {
				return err
			}
			return printJSON(found)
		},
	}
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
// returns nil. It leaves that to another process: if the one who serves the file
// system is stuck, whoever asks cannot even be killed.
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
	if top, err := topMount(f.state.MountPoint); err != nil || top == nil || top.ID != m.ID {
		return nil // it is covered by another
	}
	late := fmt.Errorf("%s does not tell its free space in time", f.state.MountPoint)
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, late)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", spaceName, "--", f.state.MountPoint)
	cmd.Args[0], cmd.Dir = "serpcrypt", "/"
	found := new(space)
	err = untilDone(ctx, func() error {
		text, err := cmd.Output()
		if err != nil {
			return err
		}
		return json.Unmarshal(text, found)
	})
	if err != nil {
		debugf("%v", err)
		return nil
	}
	return found
}

// diskBytes returns what the container takes of its disk, or nil if that is
// unknown or, as with a block device, makes no sense.
func (f openContainer) diskBytes() *int64 {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var s unix.Stat_t
	err := untilDone(ctx, func() error { return unix.Stat(f.state.Container, &s) })
	if err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	bytes := int64(s.Blocks) * sectorSize // stat(2): in units of 512 bytes
	return &bytes
}
