package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

// outcome is how a run of the program ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// serpcrypt runs the program with stdin as its standard input.
func serpcrypt(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	cmd := exec.Command("serpcrypt", args...)
	cmd.Stdin = strings.NewReader(stdin)
	return runCommand(t, cmd)
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

// newBox makes a small container, which testPassphrase opens.
func newBox(t *testing.T, options ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "box")
	args := append([]string{"create", "--size", "3M", "--pbkdf-force-iterations", "1000", "-q", path}, options...)
	serpcrypt(t, testPassphrase+"\n", args...).must(t, 0)
	return path
}

// goldenFolder holds containers that other tools made.
const goldenFolder = "../../testdata/golden"

// unpack decompresses an .xz file into a folder of the test.
func unpack(t *testing.T, path string) string {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := xz.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	unpacked := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(path), ".xz"))
	out, err := os.Create(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := out.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return unpacked
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
