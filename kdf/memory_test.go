package kdf

import (
	"math"
	"os"
	"testing"
	"testing/fstest"
)

const meminfo = "MemTotal:       16000000 kB\nMemFree:          100000 kB\nMemAvailable:    8000000 kB\n"

// mounts of cgroups as systemd makes them, with both versions at once.
const (
	mounts1 = "30 23 0:27 / /proc rw - proc proc rw\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	mounts2         = "31 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	mountsContainer = "31 23 0:27 /pod/7 /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n"
)

func TestAvailableMemory(t *testing.T) {
	const (
		v1 = "sys/fs/cgroup/memory/"
		v2 = "sys/fs/cgroup/"
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing is known", nil, math.MaxInt64},
		{"old kernel", map[string]string{"proc/meminfo": "MemTotal: 16000000 kB\n"}, math.MaxInt64},
		{"nonsense", map[string]string{"proc/meminfo": "MemAvailable: many kB\n", "proc/self/mountinfo": "?\n", "proc/self/cgroup": "?\n"}, math.MaxInt64},
		{"system", map[string]string{"proc/meminfo": meminfo}, 8000000 << 10},
		{"version 2, no limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/a\n",
			v2 + "a/memory.max": "max\n", v2 + "a/memory.current": "1000\n",
		}, 8000000 << 10},
		{"version 2", map[string]string{
			"proc/meminfo": meminfo, "proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/a/b\n",
			v2 + "a/b/memory.max": "50000\n", v2 + "a/b/memory.current": "12000\n",
			v2 + "a/b/memory.stat": "anon 1\ninactive_file 1000\nactive_file 200\ninactive_file_x 5\n",
		}, 50000 - 12000 + 1200},
		{"version 2, the limit is further up", map[string]string{
			"proc/meminfo": meminfo, "proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/a/b\n",
			v2 + "a/b/memory.max": "max\n", v2 + "a/b/memory.current": "12000\n",
			v2 + "a/memory.max": "40000\n", v2 + "a/memory.current": "39000\n",
		}, 1000},
		{"version 2, at the top", map[string]string{
			"proc/meminfo": meminfo, "proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/\n",
			v2 + "memory.max": "40000\n", v2 + "memory.current": "10000\n",
		}, 30000},
		{"version 2, in a container", map[string]string{
			"proc/meminfo": meminfo, "proc/self/mountinfo": mountsContainer, "proc/self/cgroup": "0::/pod/7/x\n",
			v2 + "memory.max": "40000\n", v2 + "memory.current": "10000\n",
			v2 + "x/memory.max": "20000\n", v2 + "x/memory.current": "10000\n",
		}, 10000},
		{"version 2, in a container's own group", map[string]string{
			"proc/meminfo": meminfo, "proc/self/mountinfo": mountsContainer, "proc/self/cgroup": "0::/pod/7\n",
			v2 + "memory.max": "40000\n", v2 + "memory.current": "10000\n",
		}, 30000},
		{"version 2, outside of the name space", map[string]string{
			"proc/meminfo": meminfo, "proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/../../b\n",
			v2 + "memory.max": "40000\n", v2 + "memory.current": "10000\n",
		}, 30000},
		{"more than the limit is used", map[string]string{
			"proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/\n",
			v2 + "memory.max": "40000\n", v2 + "memory.current": "50000\n",
		}, 0},
		{"version 1", map[string]string{
			"proc/meminfo": meminfo, "proc/self/mountinfo": mounts1 + mounts2, "proc/self/cgroup": "5:cpu:/\n4:cpuset,memory:/a:b\n0::/\n",
			v1 + "memory.limit_in_bytes": "9223372036854771712\n", v1 + "memory.usage_in_bytes": "1000000\n",
			v1 + "a:b/memory.limit_in_bytes": "70000\n", v1 + "a:b/memory.usage_in_bytes": "30000\n",
			v1 + "a:b/memory.stat": "inactive_file 9\ntotal_inactive_file 5000\ntotal_active_file 50\n",
		}, 70000 - 30000 + 5050},
		{"version 1, no limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/mountinfo": mounts1, "proc/self/cgroup": "4:memory:/\n",
			v1 + "memory.limit_in_bytes": "9223372036854771712\n", v1 + "memory.usage_in_bytes": "1000000\n",
		}, 8000000 << 10},
	} {
		root := fstest.MapFS{}
		for name, content := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(content)}
		}
		if got := availableMemory(root); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestAvailableMemoryHere: something is known of a system that runs Linux.
func TestAvailableMemoryHere(t *testing.T) {
	got := availableMemory(os.DirFS("/"))
	if got < 1<<20 || got == math.MaxInt64 {
		t.Errorf("%d bytes", got)
	}
	t.Logf("%d bytes", got)
}

func TestMappable(t *testing.T) {
	for _, c := range []struct{ need, limit, want int64 }{
		{6400, 6400, 6400},
		{6400, 6399, 6300},
		{6400, 3250, 3200},
		{6400, 99, 0},
		{6400, -1, 0},
	} {
		got := mappable(c.need, func(size int64) bool { return size-mappedBeside <= c.limit })
		if got != c.want {
			t.Errorf("%d bytes, %d can be mapped: got %d, want %d", c.need, c.limit, got, c.want)
		}
	}
	if !canMap(1<<20) || canMap(1<<60) || canMap(math.MaxInt64) {
		t.Errorf("1 MiB: %v, 2^60: %v, 2^63-1: %v", canMap(1<<20), canMap(1<<60), canMap(math.MaxInt64))
	}
}
