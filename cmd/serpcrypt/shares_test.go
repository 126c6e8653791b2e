package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/mounts"
	"serpcrypt/internal/skip"
)

func TestOwnersOnly(t *testing.T) {
	for _, c := range []struct {
		kind, options string
		want          bool
	}{
		{"ext4", "rw", false},
		{"nfs4", "rw,vers=4.2", false},
		{"fuse.sshfs", "rw,user_id=1000,group_id=1000", true},
		{"fuse.sshfs", "rw,user_id=1000,allow_other", false},
		{"fuse", "rw,user_id=0,allow_other_not", true},
		{"fuseblk", "rw,user_id=0,allow_other,blksize=4096", false},
		{"fusectl", "rw", false},
	} {
		if got := ownersOnly(&mounts.Mount{FSType: c.kind, VFSOptions: c.options}); got != c.want {
			t.Errorf("%s with %s: %t", c.kind, c.options, got)
		}
	}
}

// TestShares opens containers in and at folders of another user's FUSE mount, as
// sshfs makes them, and of a file system that fusermount3 refuses.
func TestShares(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can be two users")
	}
	needMounts(t)
	if _, err := findProgram("fusermount3"); err != nil {
		skip.Skip(t, err.Error())
	}
	fuseForAll(t)
	const nobody = 65534
	dir := openFolder(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyProgram(t, path("serpcrypt"), self, 0o755)
	if err := os.WriteFile(path("key"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"user", "root", "huge"} {
		if err := os.Mkdir(path(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chown(path("user"), nobody, nobody), os.Chown(path("huge"), nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	run := func(uid uint32, args ...string) outcome {
		t.Helper()
		cmd := exec.Command(path("serpcrypt"), args...)
		cmd.Dir = path("user")
		run := path("run")
		if uid == nobody {
			run = path("user/run")
		}
		cmd.Env = append(os.Environ(), runtimeDirEnv+"="+run)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return runCommand(t, cmd)
	}
	refused := func(uid uint32, code int, want, wantHint string, args ...string) {
		t.Helper()
		args = append([]string{"open", "-d", path("key")}, args...)
		o := run(uid, args...).must(t, code)
		lines := strings.SplitAfter(o.stderr, "serpcrypt: hint: ")
		if len(lines) != 2 || !strings.Contains(lines[0], want) || !strings.HasPrefix(lines[1], wantHint) {
			t.Errorf("%q as user %d says\n%swant %q and the hint %q", args, uid, o.stderr, want, wantHint)
		}
	}
	run(nobody, "create", "-q", "--sparse", "--size", "4M", "--pbkdf-force-iterations", "1000", "-d", path("key"), "box").must(t, 0)
	if err := os.CopyFS(path("root"), os.DirFS(path("user"))); err != nil {
		t.Fatal(err)
	}

	// A folder by FUSE.
	if err := os.Mkdir(path("user/share"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path("user/share"), nobody, nobody); err != nil {
		t.Fatal(err)
	}
	run(nobody, "open", "--raw", "-d", path("key"), "box", "share").must(t, 0)
	hint := fusefs.Type + " at " + path("user/share") + " does not let in everybody"
	refused(0, exitPermission, "mount point: ", hint, "--raw", path("root/box"), "share/below")
	refused(0, exitPermission, "permission denied", hint, "--raw", "share/volume", path("root"))
	run(nobody, "close", "share").must(t, 0)

	// One that its user could use, but for fusermount3.
	if _, err := findProgram("fuse2fs"); err == nil {
		run(nobody, "create", "-q", "--sparse", "--size", "16M", "--fs", "ext4", "--pbkdf-force-iterations", "1000", "-d", path("key"), "ext4").must(t, 0)
		run(nobody, "open", "-d", path("key"), "ext4", "share").must(t, 0)
		mkdir := exec.Command("mkdir", path("user/share/below"))
		mkdir.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if output, err := mkdir.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		refused(nobody, exitPermission, "fusermount3 has no access to it", "fuse.ext4 at "+path("user/share"), "--raw", "box", "share/below")
		run(nobody, "close", "share").must(t, 0)
	}

	// One of a type that fusermount3 refuses.
	if err := unix.Mount("none", path("huge"), "hugetlbfs", 0, "mode=777"); err != nil {
		t.Logf("without hugetlbfs: %v", err)
		return
	}
	defer func() {
		if err := unix.Unmount(path("huge"), 0); err != nil {
			t.Error(err)
		}
	}()
	if err := errors.Join(os.Mkdir(path("huge/dir"), 0o755), os.Chown(path("huge/dir"), nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	refused(nobody, exitBad, "is forbidden", hintLocalDir, "--raw", "box", path("huge/dir"))
	if _, err := os.Stat(path("user/ext4")); err == nil {
		refused(nobody, exitBad, "is forbidden", hintLocalDir, "ext4", path("huge/dir"))
	}
}
