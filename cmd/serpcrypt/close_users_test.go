package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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
