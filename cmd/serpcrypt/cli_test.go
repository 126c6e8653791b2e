package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"serpcrypt/internal/golden"
	"serpcrypt/volume"
)

// outcome is how a run of the program ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// serpcrypt runs the program with stdin as its standard input.
func serpcrypt(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	return runIn(t, "", stdin, args...)
}

func runCommand(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return outcome{exitCode(t, err), stdout.String(), stderr.String()}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

// must ends the test if the run did not end with code.
func (o outcome) must(t *testing.T, code int) outcome {
	t.Helper()
	if o.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", o.code, code, o.stdout, o.stderr)
	}
	return o
}

const testPassphrase = "correct horse battery staple"

// newBox makes a small container, of LUKS2 unless told otherwise, which testPassphrase opens.
func newBox(t *testing.T, options ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "box")
	args := append([]string{"create", "--size", "3M", "--pbkdf-force-iterations", "1000", "-q", path}, options...)
	serpcrypt(t, testPassphrase+"\n", args...).must(t, 0)
	return path
}

// unpack writes a golden container to a file of the test.
func unpack(t *testing.T, image *golden.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), image.Name)
	if err := os.WriteFile(path, image.Unpack(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// poke changes bytes of a file.
func poke(t *testing.T, path string, offset int64, b string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(b), offset); err != nil {
		t.Fatal(err)
	}
}

// readHeaderOf reads the header of a container in a file.
func readHeaderOf(path string) (*volume.Header, error) {
	f, err := volume.PeekFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return volume.ReadHeader(volume.Attached(f))
}

// commandIn is the program in a folder.
func commandIn(folder, stdin string, args ...string) *exec.Cmd {
	cmd := exec.Command("serpcrypt", args...)
	cmd.Dir = folder
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// runIn runs the program in a folder.
func runIn(t *testing.T, folder, stdin string, args ...string) outcome {
	t.Helper()
	return runCommand(t, commandIn(folder, stdin, args...))
}

// names lists what is in a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// content returns what is in a file.
func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
