package loopdev

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func usersOf(t *testing.T, path string) []User {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	users, err := Users(file)
	if err != nil {
		t.Fatal(err)
	}
	return users
}

// TestUsers: a file is found by whatever name, and no other is taken for it.
func TestUsers(t *testing.T) {
	content := make([]byte, 1<<20)
	backing, other := newFile(t, content), newFile(t, content)
	if users := usersOf(t, backing); len(users) != 0 {
		t.Errorf("before: %v", users)
	}
	writes := attach(t, backing, Options{})
	reads := attach(t, backing, Options{ReadOnly: true})
	want := []User{{writes.Path, false}, {reads.Path, true}}
	slices.SortFunc(want, func(a, b User) int { return strings.Compare(a.Path, b.Path) })
	link, renamed := backing+".link", backing+".renamed"
	if err := errors.Join(os.Symlink(backing, link), os.Link(backing, renamed)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{backing, link, renamed} {
		if users := usersOf(t, path); !slices.Equal(users, want) {
			t.Errorf("%s: %v, want %v", path, users, want)
		}
	}
	if users := usersOf(t, other); len(users) != 0 {
		t.Errorf("another file: %v", users)
	}

	// A device on a device, and what has got the place of the file's name.
	onDevice := attach(t, reads.Path, Options{ReadOnly: true})
	if users := usersOf(t, reads.Path); !slices.Equal(users, []User{{onDevice.Path, true}}) {
		t.Errorf("%s: %v, want %s", reads.Path, users, onDevice.Path)
	}
	if err := errors.Join(os.Remove(backing), os.WriteFile(backing, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	if users := usersOf(t, backing); len(users) != 0 {
		t.Errorf("a new file at the path: %v", users)
	}
	if users := usersOf(t, renamed); !slices.Equal(users, want) {
		t.Errorf("the old one: %v, want %v", users, want)
	}
}

// TestUsersByPath: who may not open the devices goes by what /sys says.
func TestUsersByPath(t *testing.T) {
	backing := newFile(t, make([]byte, 1<<20))
	d := attach(t, backing, Options{})
	reachable(t, backing)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and the thread ends with the goroutine
		const nobody = 65534
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			t.Error(err)
			return
		}
		if fd, err := unix.Open(d.Path, unix.O_RDONLY, 0); err == nil {
			unix.Close(fd)
			t.Errorf("%s can be opened by everybody", d.Path)
		}
		id, ok := backingOf("/sys/block/" + d.Path[len("/dev/"):])
		var stat unix.Stat_t
		if err := unix.Stat(backing, &stat); err != nil || !ok || id != identityOf(&stat) {
			t.Errorf("found %v, %v, want the file (%v)", id, ok, err)
		}
	}()
	<-done
}

// reachable lets everybody get at path, in a folder of the test.
func reachable(t *testing.T, path string) {
	t.Helper()
	folder := filepath.Dir(path)
	if err := errors.Join(os.Chmod(path, 0o644), os.Chmod(folder, 0o755), os.Chmod(filepath.Dir(folder), 0o755)); err != nil {
		t.Fatal(err)
	}
}

func TestFindBelow(t *testing.T) {
	backing := newFile(t, make([]byte, 1<<20))
	d := attach(t, backing, Options{})
	for folder, want := range map[string][]string{
		filepath.Dir(backing):    {d.Path},
		backing:                  nil,
		backing[:len(backing)-1]: nil,
	} {
		if found, err := FindBelow(folder); err != nil || !slices.Equal(found, want) {
			t.Errorf("%s: %q, %v; want %q", folder, found, err, want)
		}
	}
}

func TestBacking(t *testing.T) {
	backing := newFile(t, make([]byte, 1<<20))
	d := attach(t, backing, Options{})
	number := func(path string) (major, minor uint32) {
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil {
			t.Fatal(err)
		}
		return unix.Major(uint64(stat.Rdev)), unix.Minor(uint64(stat.Rdev))
	}
	if got := Backing(number(d.Path)); got != backing {
		t.Errorf("%s is made of %q, want %s", d.Path, got, backing)
	}
	if got := Backing(0, 0); got != "" {
		t.Errorf("no device is made of %q", got)
	}
	// A partition is a folder within; not every kernel knows any.
	whole := t.TempDir()
	part := filepath.Join(whole, "loop0p1")
	if err := errors.Join(os.Mkdir(part, 0o700), os.Mkdir(filepath.Join(whole, "loop"), 0o700),
		os.WriteFile(filepath.Join(whole, "loop", "backing_file"), []byte("/a file\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, block := range []string{whole, part} {
		if got := wholeBackingPath(block); got != "/a file" {
			t.Errorf("%s is made of %q", block, got)
		}
	}
}
