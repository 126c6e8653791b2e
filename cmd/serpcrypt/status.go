package main

import (
	"os"
	"path/filepath"
	"slices"
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

// openContainer is an entry of the runtime folder.
type openContainer struct {
	entry runEntry
	state openState
	alive bool
}

// findEntries returns what is in the runtime folder, if there is one.
func findEntries() ([]runEntry, error) {
	folder, exists, err := findRuntimeFolder()
	if err != nil || !exists {
		return nil, err
	}
	return folder.entries()
}

// findOpen returns the containers that this user has open, the oldest first,
// and those whose server died. It touches no mount.
func findOpen() ([]openContainer, error) {
	entries, err := findEntries()
	if err != nil {
		return nil, err
	}
	var found []openContainer
	for _, e := range entries {
		f, err := e.load()
		if err != nil {
			return nil, err
		}
		if f != nil {
			found = append(found, *f)
		}
	}
	slices.SortFunc(found, func(a, b openContainer) int { return a.state.Since.Compare(b.state.Since) })
	return found, nil
}

// why says what is wrong with a container whose server no longer lives.
func (f openContainer) why() string {
	if f.state.Failure != "" {
		return f.state.Failure
	}
	return "its server died, and what had not been synced is lost"
}

// matchOpen returns the open containers that name, the path of a mount point,
// a container or a loop device, stands for.
func matchOpen(found []openContainer, name string) ([]openContainer, error) {
	path, err := resolvePath(name)
	if err != nil {
		path = name
	}
	var matches []openContainer
	for _, f := range found {
		if path == f.state.MountPoint || path == f.state.Container || f.state.Loop != "" && path == f.state.Loop {
			matches = append(matches, f)
		}
	}
	if len(matches) == 0 {
		matches = sameFile(found, name)
	}
	if len(matches) == 0 {
		return nil, notOpen(name)
	}
	return matches, nil
}

func notOpen(name string) error { return failf(exitBad, hintBusy, "%s is not open", name) }

// sameFile finds a container by another name of the same file.
func sameFile(found []openContainer, name string) []openContainer {
	info, err := os.Stat(name)
	if err != nil || info.IsDir() {
		return nil
	}
	var matches []openContainer
	for _, f := range found {
		if other, err := os.Stat(f.state.Container); err == nil && os.SameFile(info, other) {
			matches = append(matches, f)
		}
	}
	return matches
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
	for _, f := range found {
		printStatus(f)
	}
	return nil
}

// health is the word for how an entry is.
func (f openContainer) health() string {
	switch {
	case f.alive && !f.state.Raw && f.unmounted():
		return "closing"
	case f.alive:
		return "open"
	case f.state.Failure != "":
		return "failed"
	}
	return "dead"
}

// mode is how the container may be used.
func (s openState) mode() string {
	if s.ReadOnly {
		return "read-only"
	}
	return "read/write"
}

// unmounted reports whether only the server is left: files may be in use yet.
func (f openContainer) unmounted() bool {
	m, err := f.entry.outerMount(f.state)
	return err == nil && m == nil
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
