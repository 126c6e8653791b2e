package newfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// names lists what is in a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestNameless(t *testing.T) {
	dir := t.TempDir()
	f, err := CreateNameless(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	hidden, err := createHidden(filepath.Join(dir, "box"))
	if err != nil {
		t.Fatal(err)
	}
	defer hidden.Discard()
	hidden.dropName()
	for _, f := range []*File{f, hidden} {
		if _, err := f.WriteString("text"); err != nil {
			t.Error(err)
		}
	}
	if got := names(t, dir); got != "" {
		t.Errorf("the folder has %q", got)
	}
	if _, err := Create(filepath.Join(dir, "none", "box")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
}

func TestPublish(t *testing.T) {
	for kind, create := range map[string]func(string) (*File, error){"unnamed": Create, "hidden": createHidden} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "box")
			make := func(text string) *File {
				f, err := create(path)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteString(text); err != nil {
					t.Fatal(err)
				}
				if _, err := os.Lstat(path); kind == "unnamed" && text == "one" && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s exists before it is published", path)
				}
				return f
			}

			f := make("one")
			f.Discard()
			if got := names(t, dir); got != "" {
				t.Errorf("left after discard: %s", got)
			}

			f = make("two")
			if err := f.Publish(false); err != nil {
				t.Fatal(err)
			}
			f.Discard()
			if got := names(t, dir); got != "box" || content(t, path) != "two" {
				t.Errorf("the folder has %q", got)
			}
			if info, _ := os.Stat(path); info.Mode() != 0o600 {
				t.Errorf("mode %v, want 0600", info.Mode())
			}

			f = make("three")
			err := f.Publish(false)
			if !errors.Is(err, fs.ErrExist) {
				t.Errorf("over an existing file: %v", err)
			}
			f.Discard()
			if got := names(t, dir); got != "box" || content(t, path) != "two" {
				t.Errorf("the folder has %q after a refused file", got)
			}

			f = make("four")
			if err := f.Publish(true); err != nil {
				t.Fatal(err)
			}
			f.Discard()
			if got := names(t, dir); got != "box" || content(t, path) != "four" {
				t.Errorf("the folder has %q after a replaced file", got)
			}
		})
	}
}

// TestUnsyncedGetsNoName: a file that cannot be synced, here as it is
// closed, may not be whole.
func TestUnsyncedGetsNoName(t *testing.T) {
	for _, replace := range []bool{false, true} {
		dir := t.TempDir()
		f, err := createHidden(filepath.Join(dir, "box"))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := f.Publish(replace); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("replace %v: published (%v)", replace, err)
		}
		f.Discard()
		if left := names(t, dir); left != "" {
			t.Errorf("replace %v: the folder has %q", replace, left)
		}
	}
}

func TestLongName(t *testing.T) {
	name := strings.Repeat("é", 127) // 254 bytes of the 255 that there may be
	for kind, create := range map[string]func(string) (*File, error){"unnamed": Create, "hidden": createHidden} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			for _, replace := range []bool{false, true} {
				f, err := create(path)
				if err != nil {
					t.Fatal(err)
				}
				if hidden := names(t, dir); !utf8.ValidString(hidden) {
					t.Errorf("the hidden name %q is no text", hidden)
				}
				if err := f.Publish(replace); err != nil {
					t.Errorf("replace %v: %v", replace, err)
				}
				f.Discard()
				if got := names(t, dir); got != name {
					t.Errorf("replace %v: the folder has %q", replace, got)
				}
			}
		})
	}
}

// A folder in which one may create, but not read, takes files as well.
func TestUnreadableFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // what leads there may be closed to others
	if err := os.Chmod(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) }) // so that it can be removed
	if os.Geteuid() == 0 {
		// The rights of root end with its identity for files, which each
		// thread has for itself.
		const nobody = 65534
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer unix.Setfsuid(0)
	}
	if _, err := os.Open("."); !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("the folder can be read: %v", err)
	}
	f, err := Create("box")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	if err := f.Publish(false); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("box"); err != nil {
		t.Error(err)
	}
}
