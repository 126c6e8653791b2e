package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/skip"
)

// TestKillDuringSync kills a server that shall end, and is about to sync the file
// system that it serves. It has to die of that, and everything has to come free.
func TestKillDuringSync(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Skip(t, "without root the kernel mounts nothing that could be synced")
	}
	s := newOpenSession(t)
	s.run("serpcrypt", "create", "--sparse", "--size", "400M", "--fs", "ext4", "--pbkdf-force-iterations", "1000", "-d", "key", "box.luks")
	s.run("serpcrypt", "open", "-d", "key", "box.luks", "box")
	f := s.theOpen()
	server := f.state.PID
	// It keeps the file system in use, and the sync busy.
	holder := exec.Command("sh", "-c", "while dd if=/dev/zero of=data bs=1M count=300 conv=notrunc; do :; done")
	holder.Dir = s.path("box")
	holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { _ = syscall.Kill(-holder.Process.Pid, syscall.SIGKILL) }
	defer func() {
		end()
		_ = holder.Wait()
	}()
	if err := syscall.Kill(server, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * politeTime); !syncing(server); {
		if time.Now().After(deadline) {
			t.Fatal("nobody is seen to sync")
		}
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); f.entry.alive(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the killed server does not die: %s", processState(server))
		}
	}
	end()
	s.outcome("timeout", "-k", "1", "30", "serpcrypt", "close", "box").must(t, exitBad)
}

// syncing reports whether a process or a child of it syncs a file system.
func syncing(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(filepath.Join(task, "children"))
		for _, child := range append(strings.Fields(string(children)), filepath.Base(task)) {
			stacks, _ := filepath.Glob("/proc/" + child + "/task/*/stack")
			for _, path := range stacks {
				if stack, err := os.ReadFile(path); err == nil && strings.Contains(string(stack), "sync_inodes_sb") {
					return true
				}
			}
		}
	}
	return false
}

func processState(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, state, _ := strings.Cut(string(text), "State:")
	state, _, _ = strings.Cut(state, "\n")
	return strings.TrimSpace(state)
}

func TestRunApart(t *testing.T) {
	dir := t.TempDir()
	text, err := runApart(t.Context(), spaceName, "--", dir)
	if err != nil || !strings.Contains(string(text), `"free_bytes": `) {
		t.Errorf("space: %s, %v", text, err)
	}
	missing := filepath.Join(dir, "missing")
	if _, err := runApart(t.Context(), syncName, "--", missing); err == nil || err.Error() != "no such file or directory" {
		t.Errorf("sync of nothing: %v", err)
	}
	if _, err := runApart(t.Context(), syncName, "--", dir); err != nil {
		t.Errorf("sync: %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		skip.Skip(t, "cannot mount: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	held, err := os.Create(filepath.Join(dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unmountApart(t.Context(), dir, false); !errors.Is(err, unix.EBUSY) {
		t.Errorf("unmount in use: %v, want %v", err, unix.EBUSY)
	}
	if err := unmountApart(t.Context(), dir, true); err != nil {
		t.Errorf("lazy unmount: %v", err)
	}
	if err := unmountApart(t.Context(), dir, false); err == nil || errors.Is(err, unix.EBUSY) {
		t.Errorf("unmount of nothing: %v", err)
	}
}
