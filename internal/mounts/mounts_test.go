package mounts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/skip"
)

// mountAt mounts a file system until the test is done.
func mountAt(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can mount")
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		skip.Skip(t, "cannot mount: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// TestTable mounts at one place twice, and over what is above it.
func TestTable(t *testing.T) {
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, bind := filepath.Join(parent, "dir"), filepath.Join(parent, "bind")
	for _, d := range []string{dir, bind} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := Top(dir); m != nil || err != nil {
		t.Errorf("before, %v is mounted: %v", m, err)
	}
	mountAt(t, dir)
	first, err := Top(dir)
	if err != nil || first == nil {
		t.Fatalf("mounted is %v, %v", first, err)
	}
	if cover, err := Cover(first); !IsSeen(first) || cover != "" || err != nil {
		t.Errorf("it is seen: %v; covered at %q, %v", IsSeen(first), cover, err)
	}
	if err := unix.Mount(dir, bind, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(bind, unix.MNT_DETACH) })
	both := []string{dir, bind}
	if places, err := Like(first); err != nil || !slices.Equal(places, both) {
		t.Errorf("mounts like it are at %q, %v", places, err)
	}
	if places, err := OfDevice(first.Major, first.Minor); err != nil || !slices.Equal(places, both) {
		t.Errorf("its device is seen at %q, %v", places, err)
	}
	if places, err := Below(parent); err != nil || !slices.Equal(places, both) {
		t.Errorf("below %s are %q, %v", parent, places, err)
	}
	if places, err := Below(dir); err != nil || len(places) != 0 {
		t.Errorf("below %s are %q, %v", dir, places, err)
	}
	for path, want := range map[string]string{dir: dir, dir + "/no/where": dir, dir + "ectory": filepath.Dir(dir)} {
		if m, err := Containing(path); err != nil || m == nil || (m.Mountpoint == dir) != (want == dir) {
			t.Errorf("%s is in %v, %v; want %s", path, m, err, want)
		}
	}

	mountAt(t, dir)
	if all, err := At(dir); err != nil || len(all) != 2 || all[0].ID != first.ID {
		t.Errorf("two are mounted there: %v, %v", all, err)
	}
	if cover, err := Cover(first); IsSeen(first) || cover != dir || err != nil {
		t.Errorf("covered, it is seen: %v; covered at %q, %v", IsSeen(first), cover, err)
	}
	second, err := Top(dir)
	if err != nil || second == nil || second.ID == first.ID {
		t.Fatalf("on top is %v, %v", second, err)
	}
	mountAt(t, parent)
	if cover, err := Cover(second); cover != parent || err != nil {
		t.Errorf("with another above, it is covered at %q, %v", cover, err)
	}
}

// TestWatch changes the table of mounts many times: not one change may
// be missed, as a server that waits for it would wait on.
func TestWatch(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can mount")
	}
	changed, err := Watch()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	expect := func(what string, round int) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(5 * time.Second):
			t.Fatalf("round %d: nothing told of the %s", round, what)
		}
	}
	for round := range 500 {
		for len(changed) > 0 {
			<-changed
		}
		if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
			skip.Skip(t, "cannot mount: "+err.Error())
		}
		expect("mount", round)
		time.Sleep(time.Millisecond) // for all goroutines to be idle, as in a server
		if err := unix.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
		expect("unmount", round)
	}
}
