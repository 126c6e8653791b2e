package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"serpcrypt/internal/skip"
)

// newClosable is a session with a container with ext4, for root.
func newClosable(t *testing.T) *openSession {
	t.Helper()
	s := newOpenSession(t)
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can mount")
	}
	s.run("serpcrypt", "create", "--size", "16M", "--fs", "ext4", "--pbkdf-force-iterations", "1000", "-d", "key", "box.luks")
	return s
}

// TestCloseTogether: several at once all wait for the end.
func TestCloseTogether(t *testing.T) {
	s := newClosable(t)
	for _, how := range []string{"", "--raw"} {
		open := []string{"serpcrypt", "open", "-d", "key", "box.luks", "box"}
		if how != "" {
			open = append(open, how)
		}
		s.run(open...)
		var closing []*exec.Cmd
		for range 4 {
			closing = append(closing, s.start("serpcrypt", "close", "box"))
		}
		ended := 0
		for _, c := range closing {
			_ = c.Wait()
			switch code := c.ProcessState.ExitCode(); code {
			case 0:
				ended++
			case exitBad: // it was closed before this one looked
			default:
				t.Errorf("%s: exit code %d", how, code)
			}
		}
		if ended == 0 {
			t.Errorf("%s: nobody has closed it", how)
		}
		s.nothingLeft()
	}
}

// TestCloseTogetherFails: the server dies while several wait for its end. Not one
// of them may say that all is well, whoever cleans up.
func TestCloseTogetherFails(t *testing.T) {
	s := newClosable(t)
	s.run("serpcrypt", "open", "-d", "key", "box.luks", "box")
	s.start("sh", "-c", "exec 3> box/file; : > held; exec sleep 1000")
	s.waitFor("held")
	s.run("umount", "--lazy", "box")
	server := s.server()
	first, second := s.start("serpcrypt", "close", "box.luks"), s.start("serpcrypt", "close", "box.luks")
	time.Sleep(time.Second) // whoever comes later finds it dead, and fails too
	for _, step := range []error{
		second.Process.Signal(syscall.SIGSTOP),
		syscall.Kill(server, syscall.SIGKILL),
		exitsWith(first, exitBad),
		second.Process.Signal(syscall.SIGCONT),
		exitsWith(second, exitBad),
	} {
		if step != nil {
			t.Error(step)
		}
	}
}

func exitsWith(cmd *exec.Cmd, want int) error {
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != want {
		return fmt.Errorf("%v: exit code %d, want %d", cmd.Args, code, want)
	}
	return nil
}

// TestCloseInterrupted: a server that hangs is no trap for who closes.
func TestCloseInterrupted(t *testing.T) {
	s := newClosable(t)
	for _, lazy := range []string{"--lazy=false", "--lazy"} {
		s.run("serpcrypt", "open", "-d", "key", "box.luks", "box")
		s.run("sh", "-c", "echo hello > box/file") // it has to be written back
		server := s.server()
		if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		goOn := func() { _ = syscall.Kill(server, syscall.SIGCONT) }
		t.Cleanup(goOn)
		cmd := s.start("serpcrypt", "close", lazy, "box")
		time.Sleep(time.Second)
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		hung := time.AfterFunc(20*time.Second, goOn)
		if err := exitsWith(cmd, exitSignal+int(syscall.SIGINT)); err != nil {
			t.Error(err)
		}
		if !hung.Stop() {
			t.Errorf("%s: it does not stop waiting", lazy)
		}
		goOn()
		s.run("serpcrypt", "close", "box")
		s.nothingLeft()
	}
}

// TestCloseWhileOpening: it is not open yet, and neither closed.
func TestCloseWhileOpening(t *testing.T) {
	s := newOpenSession(t)
	folder, err := makeRuntimeFolder()
	if err != nil {
		t.Fatal(err)
	}
	state := openState{Container: s.path("box.luks"), MountPoint: s.path("box"), Opening: true}
	entry, lock, err := folder.newEntry(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"box.luks", "box", "--all"} {
		o := s.outcome("serpcrypt", "close", name).must(t, exitBusy)
		if want := state.Container + " is just being opened"; !strings.Contains(o.stderr, want) {
			t.Errorf("%s: no %q in\n%s", name, want, o.stderr)
		}
	}
	lock.Close()
	s.outcome("serpcrypt", "close", "box").must(t, exitBad)
	s.outcome("serpcrypt", "close", "--all").must(t, 0)
	if exists(entry.path) {
		t.Error("what was never open is not cleaned up")
	}
}

// TestCloseTooLate: somebody else closes it when it has just been found.
func TestCloseTooLate(t *testing.T) {
	folder := testRuntime(t)
	e, lock, err := folder.newEntry(openState{Container: "/c", MountPoint: "/m"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := e.load()
	if err != nil || f == nil || !f.alive {
		t.Fatalf("open is %+v, %v", f, err)
	}
	lock.Close()
	if err := e.remove(); err != nil {
		t.Fatal(err)
	}
	err = f.close(context.Background(), false)
	if code, _ := explain(err); err == nil || err.Error() != "/m is not open" || code != exitBad {
		t.Errorf("it says %v, exit code %d", err, code)
	}
}

// inNamespace is a shell command that runs words in a mount namespace of its own,
// which has nothing of ours mounted but what is below dir. Any other would be
// held by it, and be in use.
func inNamespace(dir, words string) []string {
	return []string{"unshare", "--mount", "--propagation", "private", "sh", "-c", fmt.Sprintf(
		`grep -E ' - (fuse|[^ ]+ /dev/loop)' /proc/self/mountinfo | cut -d ' ' -f 5 | grep -v '^%s/' | tac | xargs -r -n 1 umount --lazy; %s`, dir, words)}
}

func needNamespaces(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		skip.Skip(t, "no mount namespace can be made: "+string(out))
	}
}

// TestCloseSeesOtherNamespaces: a process that has got a copy of the table of
// mounts holds what was mounted in it.
func TestCloseSeesOtherNamespaces(t *testing.T) {
	s := newClosable(t)
	needNamespaces(t)
	for _, how := range []string{"", "--raw"} {
		open := []string{"serpcrypt", "open", "-d", "key", "box.luks", "box"}
		if how != "" {
			open = append(open, how)
		}
		s.run(open...)
		words := inNamespace(s.dir, ": > ready"+how+"; exec sleep 1000")
		holder := s.start(words...)
		s.waitFor("ready" + how)
		o := s.outcome("serpcrypt", "close", "box").must(t, exitBusy)
		want := fmt.Sprintf("box is unmounted, but not for sleep (%d) in another mount namespace", holder.Process.Pid)
		if !strings.Contains(o.stderr, want) {
			t.Errorf("%s: no %q in\n%s", how, want, o.stderr)
		}
		_ = holder.Process.Kill()
		_ = holder.Wait()
		s.clean()
	}
}

// TestCloseFromOutside: what was opened in another mount namespace is closed in
// that.
func TestCloseFromOutside(t *testing.T) {
	s := newClosable(t)
	needNamespaces(t)
	words := inNamespace(s.dir, "serpcrypt open -d key box.luks box")
	s.run(words...)
	o := s.outcome("serpcrypt", "close", "box").must(t, exitBusy)
	if !strings.Contains(o.stderr, "box.luks is open in another mount namespace") {
		t.Errorf("close says\n%s", o.stderr)
	}
	_, hint, _ := strings.Cut(o.stderr, "hint: ")
	if o := s.outcome("sh", "-c", hint); o.code != 0 {
		t.Errorf("%s: exit code %d\n%s", hint, o.code, o.stderr)
	}
	s.nothingLeft()
}
