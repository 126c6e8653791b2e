package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"serpcrypt/internal/skip"
)

// person is who runs the program, in a folder that everybody can read.
type person struct {
	name      string
	uid       int
	home      string
	program   string
	container string
}

// newPersons returns root and an ordinary user, or the one who runs the test.
func newPersons(t *testing.T) []*person {
	t.Helper()
	needMounts(t)
	dir := openFolder(t)
	program := filepath.Join(dir, "serpcrypt")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyProgram(t, program, self, 0o755)
	persons := []*person{{name: "root"}, {name: "nobody", uid: 65534}}
	if uid := os.Geteuid(); uid != 0 {
		persons = []*person{{name: "user", uid: uid}}
	} else {
		fuseForAll(t)
	}
	for _, p := range persons {
		p.program, p.home = program, filepath.Join(dir, p.name)
		for _, folder := range []string{p.home, filepath.Join(p.home, "box")} {
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			p.own(t, folder)
		}
		p.container = filepath.Join(p.home, "box.luks")
	}
	return persons
}

// own gives a file to p.
func (p *person) own(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() == 0 {
		if err := os.Chown(path, p.uid, p.uid); err != nil {
			t.Fatal(err)
		}
	}
}

// command is a shell script that p runs at home, where serpcrypt gets "secret" by
// standard input.
func (p *person) command(script string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = p.home
	cmd.Stdin = strings.NewReader("secret\n")
	cmd.Env = append(os.Environ(), runtimeDirEnv+"="+filepath.Join(p.home, "run"),
		"TMPDIR="+p.home, "PATH="+filepath.Dir(p.program)+":"+os.Getenv("PATH"))
	if os.Geteuid() == 0 && p.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.uid)}}
	}
	return cmd
}

func (p *person) run(t *testing.T, script string) outcome {
	t.Helper()
	return runCommand(t, p.command(script))
}

// inside is a script that p runs, after another that root runs, with mounts of
// their own.
func (p *person) inside(t *testing.T, before, script string) *exec.Cmd {
	t.Helper()
	cmd := hiding(t, before+` && exec setpriv --reuid="$1" --regid="$1" --clear-groups sh -c "$2"`, fmt.Sprint(p.uid), script)
	own := p.command(script)
	cmd.Dir, cmd.Env, cmd.Stdin = own.Dir, own.Env, own.Stdin
	return cmd
}

// state returns what status says of the one open container.
func (p *person) state(t *testing.T) openState {
	t.Helper()
	var document struct{ Containers []openState }
	if err := json.Unmarshal([]byte(p.run(t, "serpcrypt status --json").must(t, 0).stdout), &document); err != nil || len(document.Containers) != 1 {
		t.Fatalf("open are %+v (%v)", document.Containers, err)
	}
	return document.Containers[0]
}

// makeBox makes a container with a file system, or skips the test.
func (p *person) makeBox(t *testing.T, fileSystem string) {
	t.Helper()
	os.Remove(p.container)
	const create = "serpcrypt create -q --sparse --pbkdf-force-iterations 1000 "
	switch maker := map[string]string{"squashfs": "mksquashfs", "erofs": "mkfs.erofs"}[fileSystem]; {
	case maker != "":
		if _, err := findProgram(maker); err != nil {
			skip.Skip(t, err.Error())
		}
		p.run(t, create+"--size 24M box.luks").must(t, exitOK)
		p.run(t, "rm -rf tree image; mkdir tree; echo hello >tree/file").must(t, 0)
		if maker == "mksquashfs" {
			p.run(t, "mksquashfs tree image -quiet -no-progress").must(t, 0)
		} else {
			p.run(t, "mkfs.erofs image tree").must(t, 0)
		}
		p.run(t, "serpcrypt import -q image box.luks").must(t, exitOK)
	default:
		if _, err := findMkfs(fileSystem); err != nil {
			skip.Skip(t, err.Error())
		}
		o := p.run(t, fmt.Sprintf("%s --size %dM --fs %s box.luks", create, diskSizes[fileSystem]+16, fileSystem))
		if strings.Contains(o.stderr, "mount status") {
			skip.Skip(t, "mkfs.btrfs stumbles over mounts of other users: "+o.stderr)
		}
		o.must(t, exitOK)
	}
}

// fuseForAll lets everybody use FUSE until the test ends, as all distributions
// do, but not every test machine.
func fuseForAll(t *testing.T) {
	t.Helper()
	info, err := os.Stat("/dev/fuse")
	if err != nil {
		t.Fatal(err)
	}
	if before := info.Mode().Perm(); before != 0o666 {
		t.Cleanup(func() {
			if err := os.Chmod("/dev/fuse", before); err != nil {
				t.Error(err)
			}
		})
		if err := os.Chmod("/dev/fuse", 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
