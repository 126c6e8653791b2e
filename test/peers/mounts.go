package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/load"
)

const passphrase = "for measurements only"

// mounts are encrypted containers, all open, in a folder of their own. The
// servers are the programs as people use them.
type mounts struct {
	folder, storage string
	serpcrypt       string // the program
	close           []func() error
}

// openMounts makes the containers with a file of so many bytes in each, and
// returns the ways to these files. The caller closes the mounts.
func openMounts(ctx context.Context, size int64) (*mounts, []way, error) {
	m := &mounts{}
	ways, err := m.open(ctx, size)
	if err != nil {
		return nil, nil, errors.Join(err, m.closeAll())
	}
	return m, ways, nil
}

// mountsMissing says why there can be none here, or nil.
func mountsMissing() error {
	if err := fusefs.Available(); err != nil {
		return err
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	f.Close()
	_, err = exec.LookPath("gocryptfs")
	return err
}

func (m *mounts) open(ctx context.Context, size int64) (ways []way, err error) {
	if m.folder, m.storage, err = load.Folder(5 * size); err != nil {
		return nil, err
	}
	m.close = append(m.close, func() error { return os.RemoveAll(m.folder) })
	if err := os.WriteFile(m.path("passphrase"), []byte(passphrase), 0o600); err != nil {
		return nil, err
	}
	if m.serpcrypt, err = m.build(ctx); err != nil {
		return nil, err
	}
	ours := "serpcrypt " + serpent.Auto.Resolve().String()
	raw, err := m.openSerpcrypt(ctx, "raw", size)
	if err != nil {
		return nil, err
	}
	ways = append(ways, way{name: ours + ", --raw", file: filepath.Join(raw, fusefs.FileName)})
	if os.Geteuid() == 0 { // else it would be another program's ext4
		ext4, err := m.openSerpcrypt(ctx, "ext4", size)
		if err != nil {
			return nil, err
		}
		ways = append(ways, waysTo(ours+", ext4", filepath.Join(ext4, "file"))...)
	}
	theirs, err := m.openGocryptfs(ctx)
	if err != nil {
		return nil, err
	}
	ways = append(ways, waysTo(gocryptfsName, filepath.Join(theirs, "file"))...)
	for _, w := range ways {
		if err := w.check(size); err != nil {
			return nil, err
		}
	}
	return ways, nil
}

func (m *mounts) path(name string) string { return filepath.Join(m.folder, name) }

// build builds the program from the repository that this file belongs to.
func (m *mounts) build(ctx context.Context) (string, error) {
	program := m.path("serpcrypt")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/serpcrypt")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return program, run(cmd)
}

// openSerpcrypt returns where the container is mounted.
func (m *mounts) openSerpcrypt(ctx context.Context, kind string, size int64) (string, error) {
	const headerAndFileSystem = 48 << 20
	container, mnt := m.path(kind+".img"), m.path(kind)
	create := []string{"create", "-q", "--pbkdf-force-iterations", "1000", "--size", fmt.Sprint(size + headerAndFileSystem), container}
	open := []string{"open", "--raw", container, mnt}
	if kind != "raw" {
		create, open = append(create, "--fs", kind), []string{"open", container, mnt}
	}
	if err := os.Mkdir(mnt, 0o700); err != nil {
		return "", err
	}
	for _, arguments := range [][]string{create, open} {
		cmd := exec.CommandContext(ctx, m.serpcrypt, arguments...)
		cmd.Stdin = strings.NewReader(passphrase + "\n")
		if err := run(cmd); err != nil {
			return "", err
		}
	}
	m.close = append(m.close, func() error { return run(exec.Command(m.serpcrypt, "close", mnt)) })
	return mnt, nil
}

const gocryptfsName = "gocryptfs"

// openGocryptfs returns where the folder is mounted.
func (m *mounts) openGocryptfs(ctx context.Context) (string, error) {
	folder, mnt := m.path("ciphertext"), m.path("gocryptfs")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Mkdir(mnt, 0o700)); err != nil {
		return "", err
	}
	quiet := []string{"-q", "-nosyslog", "-passfile", m.path("passphrase")}
	for _, arguments := range [][]string{{"-init", "-scryptn", "10", folder}, {folder, mnt}} {
		if err := run(exec.CommandContext(ctx, gocryptfsName, append(quiet, arguments...)...)); err != nil {
			return "", err
		}
	}
	m.close = append(m.close, func() error { return fusefs.Unmount(mnt, false) })
	return mnt, nil
}

func (m *mounts) closeAll() (err error) {
	for i := len(m.close) - 1; i >= 0; i-- {
		err = errors.Join(err, m.close[i]())
	}
	return err
}

// run fails with what the program said. That goes into a file, since a server that
// the program leaves behind would keep a pipe open.
func run(cmd *exec.Cmd) error {
	said, err := os.CreateTemp("", "")
	if err != nil {
		return err
	}
	defer said.Close()
	if err := os.Remove(said.Name()); err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		text, _ := io.ReadAll(io.NewSectionReader(said, 0, 1<<20))
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(text))
	}
	return nil
}

// gocryptfsVersion tells with the version which cipher it chooses here, and how
// fast it says that is.
func gocryptfsVersion(ctx context.Context) (string, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	version, err := exec.CommandContext(ctx, gocryptfsName, "-version").Output()
	if err != nil {
		return "", err
	}
	speed, err := exec.CommandContext(ctx, gocryptfsName, "-speed").Output()
	if err != nil {
		return "", err
	}
	chosen := regexp.MustCompile(`(?m)^(AES-GCM\S+)\s+([\d.]+ MB/s)\s+\(selected`).FindSubmatch(speed)
	if chosen == nil {
		return "", fmt.Errorf("gocryptfs -speed does not say which AES-GCM it selects: %s", speed)
	}
	name, _, _ := strings.Cut(string(version), ";")
	return fmt.Sprintf("%s with %s, which does %s by its own -speed", name, chosen[1], chosen[2]), nil
}

// way is one to a file that lies encrypted elsewhere.
type way struct {
	name, file string
	direct     bool // past the page cache of the mount
}

// waysTo returns that by the page cache, and that past it.
func waysTo(name, file string) []way {
	return []way{{name: name, file: file}, {name: name + ", O_DIRECT", file: file, direct: true}}
}

// check makes the file, and fails unless what is written comes back.
func (w way) check(size int64) error {
	want := make([]byte, load.MaxBytes)
	rand.Read(want)
	f, err := os.OpenFile(w.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(want, size-int64(len(want)))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if f, err = os.Open(w.file); err != nil { // and with a new page cache, in a FUSE file system
		return err
	}
	defer f.Close()
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, size-int64(len(got))); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s: other bytes come back than were written", w.name)
	}
	return nil
}
