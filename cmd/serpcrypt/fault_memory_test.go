package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/skip"
)

// memoryGroup is a group of processes that have only so much memory together, the
// page cache of what they write included.
type memoryGroup struct {
	version int // of cgroups
	path    string
	peak    string // names of files: the most memory that was in use,
	oomFile string // and one that counts, as oom_kill, who was killed for want of it
}

// holdsServers reports whether a server may be in the group together with those who
// fill the cache of a file system that it serves. That takes cgroups of version 2,
// and the right to tell the kernel of it. Otherwise, when the server needs memory, it
// waits until some of that cache is written.
func (g *memoryGroup) holdsServers() bool {
	return g.version == 2 && unix.Prctl(unix.PR_GET_IO_FLUSHER, 0, 0, 0, 0) == nil
}

// newMemoryGroup makes a group, by whichever version of cgroups there is.
func newMemoryGroup(t *testing.T, limit int64) *memoryGroup {
	t.Helper()
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can limit memory")
	}
	version, root := memoryGroups(t)
	g, limitFile := &memoryGroup{version: version}, "memory.limit_in_bytes"
	g.path = filepath.Join(root, fmt.Sprintf("serpcrypt-test-%d", os.Getpid()))
	g.peak, g.oomFile = "memory.max_usage_in_bytes", "memory.oom_control"
	if version == 2 {
		limitFile, g.peak, g.oomFile = "memory.max", "memory.peak", "memory.events"
		// It is an error where somebody else manages the groups, or has done so already.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0)
	}
	if err := os.Mkdir(g.path, 0o755); err != nil {
		skip.Skip(t, "no group with a limit of memory can be made: "+err.Error())
	}
	t.Cleanup(func() {
		var err error
		for range 100 { // the kernel takes some time to see that all have left
			if err = os.Remove(g.path); err == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error(err)
	})
	if err := os.WriteFile(filepath.Join(g.path, limitFile), []byte(strconv.FormatInt(limit, 10)), 0); err != nil {
		skip.Skip(t, "memory cannot be limited: "+err.Error())
	}
	return g
}

// memoryGroups returns where the groups that limit memory are, and of which version.
// A folder with a root of its own has none mounted: then it mounts them.
func memoryGroups(t *testing.T) (version int, root string) {
	t.Helper()
	const v1, v2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
	switch {
	case exists(filepath.Join(v1, "memory.limit_in_bytes")):
		return 1, v1
	case exists(filepath.Join(v2, "cgroup.subtree_control")):
		return 2, v2
	}
	root = t.TempDir()
	version = 1
	err := unix.Mount("serpcrypt-test", root, "cgroup", 0, "memory")
	if err != nil {
		version = 2
		err = unix.Mount("serpcrypt-test", root, "cgroup2", 0, "")
	}
	if err != nil {
		skip.Skip(t, "there are no groups that limit memory: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	return version, root
}

// within returns the words that run a command in the group.
func (g *memoryGroup) within(command ...string) []string {
	script := `echo $$ >"$0" && exec "$@"`
	return append([]string{"sh", "-c", script, filepath.Join(g.path, "cgroup.procs")}, command...)
}

func (g *memoryGroup) most(t *testing.T) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(content(t, filepath.Join(g.path, g.peak))), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (g *memoryGroup) killed(t *testing.T) int {
	t.Helper()
	for line := range strings.Lines(content(t, filepath.Join(g.path, g.oomFile))) {
		var n int
		if _, err := fmt.Sscanf(line, "oom_kill %d", &n); err == nil {
			return n
		}
	}
	t.Fatalf("%s counts nobody who was killed", g.oomFile)
	return 0
}

// TestLittleMemory writes four times as much as there is memory for the server and
// whoever writes. To get memory, the kernel has to write what is cached, which
// takes the server, which takes memory: they must not wait for each other.
func TestLittleMemory(t *testing.T) {
	const limit, mib = 256 << 20, 1024
	for _, raw := range []bool{true, false} {
		t.Run(fmt.Sprintf("raw=%v", raw), func(t *testing.T) {
			s := newOpenSession(t)
			var stat unix.Statfs_t
			if err := unix.Statfs(s.dir, &stat); err != nil {
				t.Fatal(err)
			}
			if stat.Type == unix.TMPFS_MAGIC {
				skip.Skip(t, "the temporary folder is in memory")
			}
			if free := int64(stat.Bavail) * int64(stat.Bsize) >> 20; free < 2*mib {
				skip.Skip(t, fmt.Sprintf("only %d MiB are free in %s", free, s.dir))
			}
			g := newMemoryGroup(t, limit)
			create := []string{"serpcrypt", "create", "--sparse", "--size", "1200M", "--pbkdf-force-iterations", "1000", "-d", "key", "box.luks"}
			open := []string{"serpcrypt", "open", "-d", "key", "box.luks", "box"}
			file := "box/file"
			if raw {
				open, file = append(open, "--raw"), "box/volume"
			} else {
				create = append(create, "--fs", "ext4")
			}
			s.ends(0, create...)
			if raw || g.holdsServers() {
				open = g.within(open...)
			} else {
				t.Log("the server is outside of the group: with cgroups of version 1, or without CAP_SYS_RESOURCE, it would wait for itself")
			}
			s.ends(0, open...)
			s.ends(0, g.within("dd", "if=/dev/zero", "of="+file, "bs=1M", "count="+strconv.Itoa(mib), "conv=notrunc,fsync", "status=none")...)
			s.ends(0, g.within("cmp", "-n", strconv.Itoa(mib<<20), file, "/dev/zero")...)
			if err := syscall.Kill(s.theOpen().state.PID, 0); err != nil {
				t.Errorf("the server: %v", err)
			}
			s.ends(0, "serpcrypt", "close", "box")
			if n := g.killed(t); n != 0 {
				t.Errorf("%d processes were killed for want of memory", n)
			}
			most := g.most(t)
			t.Logf("most memory in use: %d MiB", most>>20)
			if most < limit*9/10 {
				t.Errorf("only %d MiB were ever in use, so the limit of %d is no test", most>>20, limit>>20)
			}
			s.clean()
		})
	}
}
