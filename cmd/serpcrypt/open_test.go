package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/mounts"
	"serpcrypt/internal/procs"
	"serpcrypt/internal/skip"
)

// scriptsRanEnv names a file to which TestOpen adds the name of each script.
const scriptsRanEnv = "SERPCRYPT_TEST_RAN"

// TestOpen runs testdata/open/*.txtar, with a runtime folder for each script:
// as root with the kernel's file systems, as an ordinary user with fuse2fs.
func TestOpen(t *testing.T) {
	t.Parallel()
	needMounts(t)
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/open",
		WorkdirRoot:        openFolder(t),
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(runtimeDirEnv, filepath.Join(env.WorkDir, "run"))
			if ran := os.Getenv(scriptsRanEnv); ran != "" {
				if err := appendLine(ran, env.WorkDir); err != nil {
					return err
				}
			}
			env.Setenv("PATH", env.Getenv("PATH")+":/usr/sbin:/sbin")
			env.Defer(func() {
				if left := takeAway(env.WorkDir); left != "" {
					env.T().Fatal("left behind: " + left)
				}
			})
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":        exits,
			"jsondoc":      jsondoc,
			"poke":         pokeHex,
			"appears":      appears,
			"closes":       closes,
			"nothingleft":  nothingLeft,
			"signalserver": signalServer,
		},
	})
}

// TestOpenAsUser runs TestOpen again as an ordinary user.
func TestOpenAsUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("TestOpen has done it")
		return
	}
	needMounts(t)
	for _, program := range []string{"fusermount3", driverFuse2fs} {
		if _, err := findProgram(program); err != nil {
			skip.Skip(t, err.Error())
		}
	}
	fuseForAll(t)

	const nobody = 65534
	dir := openFolder(t)
	program := filepath.Join(dir, "serpcrypt.test")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyProgram(t, program, self, 0o755)
	if err := os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(tmp, "ran")
	cmd := exec.Command(program, "-test.run=^TestOpen$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "HOME=/nonexistent", scriptsRanEnv+"="+ran)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	if text, err := os.ReadFile(ran); err != nil || len(text) == 0 {
		t.Errorf("no script ran (%v):\n%s", err, output)
	}
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// needMounts skips a test where no file system in a container can be mounted.
func needMounts(t *testing.T) {
	t.Helper()
	needFuse(t)
	if _, err := findMkfs("ext4"); err != nil {
		skip.Skip(t, err.Error())
	}
	if os.Geteuid() == 0 {
		if _, err := os.Stat("/dev/loop-control"); err != nil {
			skip.Skip(t, "there are no loop devices: "+err.Error())
		}
	}
}

// openFolder makes a folder that every user can read, and from which mounts
// are taken away, as an error, before it is removed.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "serpcrypt-open-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left := takeAway(dir); left != "" {
			t.Errorf("left behind: %s", left)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// copyProgram copies a program by another process. While this one has the copy
// open for writing, any test that forks would hold it open too, and what is open
// for writing cannot be run ("text file busy").
func copyProgram(t *testing.T, to, from string, mode os.FileMode) {
	t.Helper()
	if output, err := exec.Command("install", "-m", fmt.Sprintf("%o", mode), from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// takeAway returns the leftovers in dir, after some time of grace, and takes
// them away as far as it can.
func takeAway(dir string) string {
	var left []string
	for range 50 {
		if left = leftovers(dir); len(left) == 0 {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, u := range procs.Using(filepath.Join(dir, "run")) {
		_ = syscall.Kill(u.PID, syscall.SIGKILL)
	}
	below, _ := mounts.Below(dir)
	for _, place := range slices.Backward(below) {
		_ = fusefs.Unmount(place, true)
	}
	return strings.Join(left, ", ")
}

// appears FILE waits until the file exists.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears FILE")
	}
	for range 1000 {
		if _, err := os.Lstat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s does not appear", args[0])
}

// closes waits until no server is left.
func closes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: closes")
	}
	folder := runtimeFolder{ts.Getenv(runtimeDirEnv)}
	for range 6000 {
		entries, err := folder.entries()
		ts.Check(err)
		if len(entries) == 0 && len(procs.Using(folder.path)) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("the container stays open")
}

// nothingleft checks that no mount, loop device, server or runtime file is
// left, at this very moment.
func nothingLeft(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: nothingleft")
	}
	if left := leftovers(ts.Getenv("WORK")); len(left) > 0 {
		ts.Fatalf("left behind: %s", strings.Join(left, ", "))
	}
}

// stopped reports whether all threads of a process are stopped.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range threads {
		text, err := os.ReadFile(path)
		_, state, _ := strings.Cut(string(text), ") ") // behind the name (proc_pid_stat(5))
		if err == nil && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return len(threads) > 0
}

// signalserver TERM|KILL|HUP|STOP|CONT MOUNTPOINT sends the server a signal. After KILL it
// waits until the server is dead, after STOP until it is stopped.
func signalServer(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}
	if neg || len(args) != 2 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signalserver TERM|KILL|HUP|STOP|CONT MOUNTPOINT")
	}
	entries, err := runtimeFolder{ts.Getenv(runtimeDirEnv)}.entries()
	ts.Check(err)
	for _, e := range entries {
		state, err := e.readState()
		if err != nil || state.MountPoint != ts.MkAbs(args[1]) {
			continue
		}
		ts.Check(syscall.Kill(state.PID, signals[args[0]]))
		for args[0] == "KILL" && e.alive() {
			time.Sleep(time.Millisecond)
		}
		// A thread that still takes a request and then stops leaves whoever has made it
		// waiting, even to be killed.
		for args[0] == "STOP" && !stopped(state.PID) {
			time.Sleep(time.Millisecond)
		}
		return
	}
	ts.Check(errors.New("no such server"))
}
