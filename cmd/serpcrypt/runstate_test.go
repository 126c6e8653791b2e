package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// testRuntime makes a runtime folder for one test.
func testRuntime(t *testing.T) runtimeFolder {
	t.Helper()
	t.Setenv(runtimeDirEnv, filepath.Join(t.TempDir(), "run"))
	folder, err := makeRuntimeFolder()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestRuntimeFolder(t *testing.T) {
	folder := testRuntime(t)
	info, err := os.Stat(folder.path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v: %v", info.Mode(), err)
	}
	if again, err := makeRuntimeFolder(); err != nil || again != folder {
		t.Errorf("the second time: %v, %v", again, err)
	}
	if found, exists, err := findRuntimeFolder(); err != nil || !exists || found != folder {
		t.Errorf("find: %v, %v, %v", found, exists, err)
	}

	t.Setenv(runtimeDirEnv, filepath.Join(folder.path, "missing"))
	if _, exists, err := findRuntimeFolder(); err != nil || exists {
		t.Errorf("find what is missing: %v, %v", exists, err)
	}
	if found, err := findOpen(); err != nil || len(found) != 0 {
		t.Errorf("open without a folder: %v, %v", found, err)
	}
}

func TestRuntimeFolderForeign(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	private := path("private")
	for _, err := range []error{
		os.Mkdir(private, 0o700),
		os.Symlink(private, path("link")),
		os.Mkdir(path("shared"), 0o700), os.Chmod(path("shared"), 0o710),
		os.WriteFile(path("file"), nil, 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"link", "shared", "file"}
	if os.Geteuid() == 0 {
		names = append(names, "foreign")
		if err := errors.Join(os.Mkdir(path("foreign"), 0o700), os.Chown(path("foreign"), 65534, 65534)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		t.Setenv(runtimeDirEnv, path(name))
		_, err := makeRuntimeFolder()
		if code, _ := explain(err); err == nil || code != exitPermission {
			t.Errorf("%s is accepted: %v", name, err)
		}
	}
	t.Setenv(runtimeDirEnv, private)
	if _, err := makeRuntimeFolder(); err != nil {
		t.Error(err)
	}
}

func TestRuntimePath(t *testing.T) {
	t.Setenv(runtimeDirEnv, "")
	session := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", session)
	want := filepath.Join(session, "serpcrypt")
	if os.Geteuid() == 0 { // the same for root's every session
		want = "/run/serpcrypt"
	}
	if got := runtimePath(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// "/" belongs to root alone, as the folder of another user's session does
	// to that user.
	if os.Geteuid() != 0 {
		t.Setenv("XDG_RUNTIME_DIR", "/")
		if got := runtimePath(); got == "/serpcrypt" {
			t.Error("the folder of another user is taken")
		}
	}
}

func TestEntry(t *testing.T) {
	folder := testRuntime(t)
	state := openState{Container: "/c", MountPoint: "/m", Since: time.Now().UTC().Truncate(time.Second), Opening: true}
	e, lock, err := folder.newEntry(state)
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.readState()
	if err != nil || got != state {
		t.Errorf("state is %+v (%v), want %+v", got, err, state)
	}
	if f, err := e.load(); err != nil || f != nil {
		t.Errorf("on its way, it is already shown: %v, %v", f, err)
	}
	if _, _, err := folder.newEntry(state); err == nil {
		t.Error("two containers may be opened at one mount point")
	}
	state.Opening = false
	if err := e.writeState(state); err != nil {
		t.Fatal(err)
	}
	life, err := e.watch()
	if err != nil {
		t.Fatal(err)
	}
	defer life.close()
	if f, err := e.load(); err != nil || f == nil || !f.alive || !life.alive() {
		t.Errorf("open, it is shown as %+v, %v; alive: %v", f, err, life.alive())
	}
	lock.Close()
	if f, err := e.load(); err != nil || f == nil || f.alive || life.alive() {
		t.Errorf("without a server, it is shown as %+v, %v; alive: %v", f, err, life.alive())
	}
	found, err := findOpen()
	if err != nil || len(found) != 1 || found[0].health() != "dead" {
		t.Errorf("open are %+v, %v", found, err)
	}
	if err := e.cleanUpLocked(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(e.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after cleaning up, the entry gives %v", err)
	}
	if f, err := e.load(); err != nil || f != nil {
		t.Errorf("removed, it is shown: %v, %v", f, err)
	}
	if err := e.cleanUpLocked(); err != nil {
		t.Errorf("cleaning up twice: %v", err)
	}
}

// TestEntryHalfMade clears away what a crash leaves, but not what is being made.
func TestEntryHalfMade(t *testing.T) {
	folder := testRuntime(t)
	e := runEntry{filepath.Join(folder.path, "1")}
	if err := os.Mkdir(e.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(e.rawDir(), 0o700), os.WriteFile(e.lockPath(), nil, 0o600), os.WriteFile(e.statePath()+".new", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if f, err := e.load(); err != nil || f != nil {
		t.Errorf("a folder without state is shown as %+v, %v", f, err)
	}
	if _, err := os.Stat(e.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without state stays: %v", err)
	}

	// The one who opened it was killed before it was open.
	opening, lock, err := folder.newEntry(openState{Container: "/c", MountPoint: "/m", Opening: true})
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if found, err := findOpen(); err != nil || len(found) != 0 {
		t.Errorf("what never was open is shown as %+v, %v", found, err)
	}
	if _, err := os.Stat(opening.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what never was open stays: %v", err)
	}

	if err := os.Mkdir(e.path, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := folder.lock() // as newEntry does
	if err != nil {
		t.Fatal(err)
	}
	loaded := make(chan *openContainer, 1)
	go func() {
		f, err := e.load()
		if err != nil {
			t.Error(err)
		}
		loaded <- f
	}()
	lock, err = os.Create(e.lockPath())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := lockFile(lock); err != nil {
		t.Fatal(err)
	}
	unlock()
	if f := <-loaded; f != nil && f.alive {
		t.Errorf("half made, it is shown as open: %+v", f)
	}
}

func TestEntryDamaged(t *testing.T) {
	folder := testRuntime(t)
	e, lock, err := folder.newEntry(openState{})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := os.WriteFile(e.statePath(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := findOpen(); err == nil {
		t.Error("a damaged state is no error")
	}
}

func TestMatchOpen(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{"a.luks", "b.luks"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link("a.luks", "hard"); err != nil {
		t.Fatal(err)
	}
	at := func(container, mountPoint, loop string) openContainer {
		return openContainer{state: openState{Container: filepath.Join(dir, container), MountPoint: filepath.Join(dir, mountPoint), Loop: loop}}
	}
	found := []openContainer{at("a.luks", "a", "/dev/loop98"), at("b.luks", "b", ""), at("b.luks", "c", "")}
	for name, want := range map[string]int{
		"a": 1, "a.luks": 1, "./a/": 1, "hard": 1, "/dev/loop98": 1, "b": 1, "b.luks": 2, "c": 1, "d": 0, "": 0, "/dev/loop99": 0,
	} {
		matches, err := matchOpen(found, name)
		if len(matches) != want || (err != nil) != (want == 0) {
			t.Errorf("%q stands for %d (%v), want %d", name, len(matches), err, want)
		}
		if code, _ := explain(err); err != nil && code != exitBad {
			t.Errorf("%q: exit code %d", name, code)
		}
	}
}
