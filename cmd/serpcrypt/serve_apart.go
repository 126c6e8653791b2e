package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"serpcrypt/internal/fusefs"
)

// What a process asks of a file system may wait for whoever serves it, and cannot
// be interrupted meanwhile. The server of a volume must never wait so for itself:
// killed, it would not end, as its other threads, which serve, would be gone. The
// file system would be stuck with it until the system is started anew. Whoever has
// others wait would be no better off, and neither would a person who wants to stop
// waiting. So other processes do such work.

const (
	spaceName   = "space"
	syncName    = "sync"
	unmountName = "unmount"
)

// apartCommands are what other commands run in processes of their own. They are
// not for people.
func apartCommands() []*cli.Command {
	hidden := func(name, usage string, do func(c *cli.Context, dir string) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Hidden: true, Usage: usage + " (started by other commands)", Flags: flags, Action: func(c *cli.Context) error {
			args, err := exactArgs(c, "MOUNTPOINT")
			if err != nil {
				return err
			}
			return do(c, args[0])
		}}
	}
	return []*cli.Command{
		hidden(spaceName, "say how full a file system is", func(_ *cli.Context, dir string) error {
			found, err := spaceAt(dir)
			if err != nil {
				return err
			}
			return printJSON(found)
		}),
		hidden(syncName, "write back what a file system holds, or all of them",
			func(c *cli.Context, dir string) error {
				if c.Bool("all") {
					unix.Sync()
					return nil
				}
				return syncFileSystem(dir)
			},
			&cli.BoolFlag{Name: "all"}),
		hidden(unmountName, "unmount a file system",
			func(c *cli.Context, dir string) error { return fusefs.Unmount(dir, c.Bool("lazy")) },
			&cli.BoolFlag{Name: "lazy"}),
	}
}

// runApart runs one of apartCommands, and returns what it prints. When ctx ends
// before, it is left to itself.
func runApart(ctx context.Context, command string, args ...string) (output []byte, err error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{command}, args...)...)
	cmd.Args[0], cmd.Dir = "serpcrypt", "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	printed := make(chan []byte, 1)
	err = untilDone(ctx, func() error {
		output, err := cmd.Output()
		printed <- output
		return err
	})
	var exit *exec.ExitError
	switch {
	case err == nil:
		return <-printed, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &exit):
		return nil, apartError(exit)
	}
	return nil, err
}

// apartError is the error that the other process has printed.
func apartError(exit *exec.ExitError) error {
	line, _, _ := strings.Cut(string(exit.Stderr), "\n")
	err := errors.New(strings.TrimPrefix(line, "serpcrypt: error: "))
	if line == "" {
		err = exit
	}
	if exit.ExitCode() == exitBusy {
		return errors.Join(unix.EBUSY, err)
	}
	return err
}

func unmountApart(ctx context.Context, dir string, lazy bool) error {
	args := []string{"--", dir}
	if lazy {
		args = append([]string{"--lazy"}, args...)
	}
	_, err := runApart(ctx, unmountName, args...)
	return err
}
