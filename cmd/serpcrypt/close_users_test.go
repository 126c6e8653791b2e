package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/skip"
)

func TestFindUsers(t *testing.T) {
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
	copyProgram(t, filepath.Join(used, "cat"), lookPath(t, "cat"), 0o700)
	file, err := os.Open(filepath.Join(used, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	for name, c := range map[string]struct {
		program string
		dir     string
		file    *os.File
	}{
		"working folder": {program: lookPath(t, "cat"), dir: used},
		"open file":      {program: lookPath(t, "cat"), file: file},
		"program":        {program: filepath.Join(used, "cat")},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(c.program)
			cmd.Dir = c.dir
			if c.file != nil {
				cmd.ExtraFiles = []*os.File{c.file}
			}
			input, err := cmd.StdinPipe() // cat runs until it is closed
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			want := user{cmd.Process.Pid, "cat"}
			if users := findUsers(used); len(users) != 1 || users[0] != want {
				t.Errorf("used by %v, want %v", users, want)
			}
			if users := findUsers(unused); len(users) != 0 {
				t.Errorf("%s is used by %v", unused, users)
			}
			input.Close()
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if users := findUsers(used); len(users) != 0 {
				t.Errorf("after its end, used by %v", users)
			}
		})
	}
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUsersOfDevice: who uses files of a file system is found also when it is no
// longer mounted anywhere.
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
	m, err := topMount(dir)
	if err != nil {
		t.Fatal(err)
	}
	copyProgram(t, filepath.Join(dir, "cat"), lookPath(t, "cat"), 0o700)
	for name, cmd := range map[string]*exec.Cmd{
		"open file": exec.Command("sh", "-c", "exec 3> "+filepath.Join(dir, "file")+"; exec cat"),
		"program":   exec.Command(filepath.Join(dir, "cat")),
	} {
		input, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		output, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(input, "ready")
		if line, err := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		want := []user{{cmd.Process.Pid, "cat"}}
		if users := usersOf(filesOf(m)); !slices.Equal(users, want) {
			t.Errorf("%s: used by %v, want %v", name, users, want)
		}
		if users := usersOf(files{device: filesOf(m).device}); !slices.Equal(users, want) {
			t.Errorf("%s: the device is used by %v, want %v", name, users, want)
		}
		input.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}

	holder, err := os.Create(filepath.Join(dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	cmd := exec.Command("cat")
	cmd.ExtraFiles = []*os.File{holder}
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if users := usersOf(filesOf(m)); !slices.Equal(users, []user{{cmd.Process.Pid, "cat"}}) {
		t.Errorf("unmounted, used by %v, want %d", users, cmd.Process.Pid)
	}
	input.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if users := usersOf(filesOf(m)); len(users) != 0 {
		t.Errorf("after their end, used by %v", users)
	}
}
