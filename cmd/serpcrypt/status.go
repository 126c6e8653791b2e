package main

import (
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/fusefs"
	"serpcrypt/volume"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show what is open",
		UsageText: "serpcrypt status [MOUNTPOINT|CONTAINER]",
		Description: `serpcrypt status
   serpcrypt status --json box.luks`,
		Action: runStatus,
	}
}

func runStatus(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) > 1 {
		return failf(exitUsage, hintHelp(commandPath(c)), "unexpected argument %q", args[1])
	}
	found, err := findOpen()
	if err != nil {
		return err
	}
	if len(args) == 1 {
		if found, err = matchOpen(found, args[0]); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return printStatusJSON(found)
	}
	if len(found) == 0 {
		notef("nothing is open")
	}
	for _, f := range found {
		printStatus(f)
	}
	return nil
}

// mode is how the container may be used.
func (s openState) mode() string {
	if s.ReadOnly {
		return "read-only"
	}
	return "read/write"
}

func printStatusJSON(found []openContainer) error {
	type item struct {
		Status string `json:"status"` // open, closing, dead, failed
		openState
		usage
		*space           // of the file system inside, unless it does not tell
		DiskBytes *int64 `json:"container_disk_bytes,omitempty"`
	}
	document := struct {
		Containers []item `json:"containers"`
	}{[]item{}}
	for _, f := range found {
		document.Containers = append(document.Containers, item{f.health(), f.state, f.usage(), f.innerSpace(), f.diskBytes()})
	}
	return printJSON(document)
}

func printStatus(f openContainer) {
	s := f.state
	line := func(name, format string, a ...any) { infof("  %-12s "+format, append([]any{name + ":"}, a...)...) }

	infof("%s", s.Container)
	switch health := f.health(); health {
	case "dead", "failed":
		line("status", "%s: %s", health, f.why())
	case "closing":
		line("status", "%s: unmounted, but files are still in use", health)
	default:
		line("status", "%s", health)
	}
	if s.Raw {
		line("volume", "%s", filepath.Join(s.MountPoint, fusefs.FileName))
	} else {
		line("mounted at", "%s", s.MountPoint)
		line("file system", "%s, by %s", s.FileSystem, s.Driver)
	}
	if s.Header != "" {
		line("header", "%s", s.Header)
	}
	if s.Loop != "" {
		line("loop device", "%s", s.Loop)
	}
	line("cipher", "%s, %s, kernel %s", s.Type, s.Cipher, s.Kernel)
	if s.KeySlot == volume.AnySlot {
		line("key", "the volume key")
	} else {
		line("key slot", "%d", s.KeySlot)
	}
	line("size", "%s", formatSize(s.Size))
	if inside := f.innerSpace(); inside != nil {
		line("used", "%s, %s free", formatSize(inside.Used), formatSize(inside.Free))
	}
	if disk := f.diskBytes(); disk != nil {
		line("on disk", "%s", formatSize(*disk))
	}
	u := f.usage()
	line("read", "%s, %s/s now", formatSize(u.ReadBytes), formatSize(int64(u.ReadRate)))
	line("written", "%s, %s/s now", formatSize(u.WrittenBytes), formatSize(int64(u.WriteRate)))
	if u.FailedWrites > 0 {
		line("failed", "%d writes", u.FailedWrites)
	}
	line("mode", "%s", s.mode())
	if s.IdleLimit > 0 {
		line("closes", "when not used for %v", seconds(s.IdleLimit))
	}
	line("since", "%s", s.Since.Local().Format(time.DateTime))
	line("server", "pid %d", s.PID)
}
