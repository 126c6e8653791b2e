package procs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/child"
	"serpcrypt/internal/skip"
)

// copyCat copies cat by another process: what this one has open for writing, any
// test that forks would hold open, and it could not be run.
func copyCat(t *testing.T, to string) {
	t.Helper()
	if output, err := exec.Command("install", "-m", "700", cat(t), to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

func cat(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t *testing.T, cmd *exec.Cmd) (c *child.Child, itself []Process) {
	t.Helper()
	c = child.Start(t, cmd, "ready\n", "ready")
	return c, []Process{{c.Process.Pid, "cat"}}
}

func TestUsing(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	used, unused := filepath.Join(dir, "used"), filepath.Join(dir, "use")
	for _, d := range []string{used, unused} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(used, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	copyCat(t, filepath.Join(used, "cat"))
	file, err := os.Open(filepath.Join(used, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	for name, cmd := range map[string]*exec.Cmd{
		"working folder": {Path: cat(t), Dir: used},
		"open file":      {Path: cat(t), ExtraFiles: []*os.File{file}},
		"program":        {Path: filepath.Join(used, "cat")},
	} {
		t.Run(name, func(t *testing.T) {
			c, want := run(t, cmd)
			if users := Using(used); !slices.Equal(users, want) {
				t.Errorf("used by %v, want %v", users, want)
			}
			if users := Using(unused); len(users) != 0 {
				t.Errorf("%s is used by %v", unused, users)
			}
			c.End()
			if users := Using(used); len(users) != 0 {
				t.Errorf("after its end, used by %v", users)
			}
		})
	}
}

// TestUsersOfDevice: who uses files of a file system is found also where they are
// seen at no path any more.
func TestUsersOfDevice(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can mount")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		skip.Skip(t, "cannot mount: "+err.Error())
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		t.Fatal(err)
	}
	mounted := Files{dir, uint64(stat.Dev)}
	copyCat(t, filepath.Join(dir, "cat"))
	for name, cmd := range map[string]*exec.Cmd{
		"open file": exec.Command("sh", "-c", "exec 3> "+filepath.Join(dir, "file")+"; exec cat"),
		"program":   exec.Command(filepath.Join(dir, "cat")),
	} {
		c, want := run(t, cmd)
		if users := mounted.Users(); !slices.Equal(users, want) {
			t.Errorf("%s: used by %v, want %v", name, users, want)
		}
		if users := (Files{Device: mounted.Device}).Users(); !slices.Equal(users, want) {
			t.Errorf("%s: the device is used by %v, want %v", name, users, want)
		}
		c.End()
	}

	holder, err := os.Create(filepath.Join(dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	c, want := run(t, &exec.Cmd{Path: cat(t), ExtraFiles: []*os.File{holder}})
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if users := mounted.Users(); !slices.Equal(users, want) {
		t.Errorf("unmounted, used by %v, want %v", users, want)
	}
	c.End()
	if users := mounted.Users(); len(users) != 0 {
		t.Errorf("after their end, used by %v", users)
	}
}

func TestJoin(t *testing.T) {
	if got, want := Join([]Process{{12, "cat"}, {13, "sh"}}), "cat (12), sh (13)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
