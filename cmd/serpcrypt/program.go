package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// findProgram looks where system programs are too, which an ordinary user's
// PATH often leaves out.
func findProgram(name string) (string, error) {
	for _, dir := range []string{"", "/usr/sbin", "/sbin", "/usr/bin", "/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// hintInstall names the package that has what is missing.
func hintInstall(packageName string) string {
	return fmt.Sprintf("install it (Debian, Ubuntu: apt-get install %s)", packageName)
}

// runOn runs a program over the file of a volume, and returns how it begins to
// say what it says.
func runOn(ctx context.Context, program string, args ...string) (said string, err error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	return runProgram(cmd)
}

// runProgram runs another program, and returns how it begins to say what it says.
func runProgram(cmd *exec.Cmd) (said string, err error) {
	// In a process group of its own: Ctrl-C reaches it through the context only.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output := &beginning{left: 64 << 10}
	cmd.Stdout, cmd.Stderr = output, output
	debugf("run %s", strings.Join(cmd.Args, " "))
	err = cmd.Run()
	said = strings.TrimSpace(output.text.String())
	if said != "" {
		debugf("%s says: %s", filepath.Base(cmd.Path), said)
	}
	return said, err
}

// beginning keeps the first bytes of what is written to it.
type beginning struct {
	text bytes.Buffer
	left int
}

func (b *beginning) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.text.Write(p[:n])
	return len(p), nil
}
