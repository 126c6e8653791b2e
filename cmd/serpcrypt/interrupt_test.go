package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/volume"
)

// startCreate starts to create a container and returns when the program says,
// by --debug, that it has come to the step.
func startCreate(t *testing.T, step string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("serpcrypt", append([]string{"create", "--debug"}, args...)...)
	cmd.Stdin = strings.NewReader(testPassphrase + "\n")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "debug: "+step) {
			go func() {
				for lines.Scan() {
				}
			}()
			return cmd
		}
		t.Log(lines.Text())
	}
	t.Fatalf("it ended before step %q: %v", step, cmd.Wait())
	return nil
}

// TestInterruptedCreate: at no step does anything stay behind.
func TestInterruptedCreate(t *testing.T) {
	steps := []struct {
		step string
		args []string
	}{
		{"write the key slots", []string{"--size", "3M", "--pbkdf-force-iterations", "2000000000"}},
		{"fill the payload", []string{"--size", "256M", "--pbkdf-force-iterations", "1000"}},
	}
	signals := []struct {
		signal syscall.Signal
		code   int
	}{
		{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}, {syscall.SIGKILL, -1},
	}
	for _, step := range steps {
		for _, s := range signals {
			t.Run(step.step+"/"+s.signal.String(), func(t *testing.T) {
				dir := t.TempDir()
				cmd := startCreate(t, step.step, append(step.args, filepath.Join(dir, "box"))...)
				if err := cmd.Process.Signal(s.signal); err != nil {
					t.Fatal(err)
				}
				if code := exitCode(t, cmd.Wait()); code != s.code {
					t.Errorf("exit code %d, want %d", code, s.code)
				}
				if left := names(t, dir); left != "" {
					t.Errorf("left behind: %s", left)
				}
			})
		}
	}
}

// TestInterruptedExport: also while nobody reads what is written.
func TestInterruptedExport(t *testing.T) {
	cmd := exec.Command("serpcrypt", "export", newBox(t), "-")
	cmd.Stdin = strings.NewReader(testPassphrase + "\n")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer hung.Stop()
	if code := exitCode(t, cmd.Wait()); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
}

// TestTimeoutOfCreate: nothing stays behind.
func TestTimeoutOfCreate(t *testing.T) {
	dir := t.TempDir()
	o := serpcrypt(t, testPassphrase, "create", "--size", "3M", "--pbkdf-force-iterations", "2000000000", "--timeout", "1", filepath.Join(dir, "box")).must(t, exitUsage)
	for _, says := range []string{"serpcrypt: the key slot takes about ", "error: time is up: the key is not derived yet"} {
		if !strings.Contains(o.stderr, says) {
			t.Errorf("no %q in\n%s", says, o.stderr)
		}
	}
	if left := names(t, dir); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// TestInterruptedKeyCheck: a header may say that to check a volume key takes
// an hour.
func TestInterruptedKeyCheck(t *testing.T) {
	box := newBox(t, "--type", "luks1")
	poke(t, box, 164, "\x77\x35\x94\x00") // 2000000000 digest iterations (LUKS1 On-Disk Format 1.2.3, table 1)
	for _, args := range [][]string{{"verify", box}, {"export", box, "-"}, {"import", os.DevNull, box}} {
		t.Run(args[0], func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("serpcrypt", append(args, "--volume-key-file", pipe)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			hung := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
			defer hung.Stop()
			// As soon as it reads, signals are heeded.
			if err := os.WriteFile(pipe, make([]byte, 64), 0); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if code := exitCode(t, cmd.Wait()); code != 130 {
				t.Errorf("exit code %d, want 130", code)
			}
		})
	}
}

// TestInterruptedOpening: a pipe that nobody writes to is no trap.
func TestInterruptedOpening(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&signalError{syscall.SIGINT})
	box, err := volume.OpenFile(newBox(t), true)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	for name, open := range map[string]func() error{
		"key file": func() error {
			_, err := readKeyFile(ctx, pipe, 0, 0)
			return err
		},
		"source": func() error {
			in, err := openSource(pipe, &container{"box", box, box})
			if err != nil {
				return err
			}
			defer in.Close()
			_, err = io.ReadAll(&interruptible{ctx: ctx, file: in})
			return err
		},
	} {
		done := make(chan error, 1)
		go func() { done <- open() }()
		select {
		case err := <-done:
			if code, _ := explain(err); code != 130 {
				t.Errorf("%s: error %v has code %d, want 130", name, err, code)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: still waiting", name)
		}
	}
}

// TestInterruptedReplacement: until the new container is whole, the file that
// it is to replace stays.
func TestInterruptedReplacement(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			box := newBox(t)
			before := content(t, box)
			cmd := startCreate(t, "write the key slots", "--force", "-q", "--pbkdf-force-iterations", "2000000000", box)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if content(t, box) != before {
				t.Error("the old container has changed")
			}
			if left := names(t, filepath.Dir(box)); left != "box" {
				t.Errorf("left behind: %s", left)
			}
		})
	}
}

// TestInterruptedMkfs: Ctrl-C while mkfs runs ends that, too, and unmounts.
func TestInterruptedMkfs(t *testing.T) {
	needFuse(t)
	bin := t.TempDir()
	script := "#!/bin/sh\n: > \"$(dirname \"$0\")/started\"\nexec sleep 1000\n"
	if err := os.WriteFile(filepath.Join(bin, "mkfs.slow"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	dir := t.TempDir()
	cmd := startCreate(t, "run "+bin, "--size", "3M", "--pbkdf-force-iterations", "1000", "--fs", "slow", filepath.Join(dir, "box"))
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if left := names(t, dir); left != "" {
		t.Errorf("left behind: %s", left)
	}
	folder, ok := strings.CutPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR=") // the last one counts
	if left := names(t, folder); !ok || left != "" {
		t.Errorf("left in %q: %s", folder, left)
	}
}
