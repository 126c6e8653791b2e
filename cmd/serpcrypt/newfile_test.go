package main

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

func TestNewFile(t *testing.T) {
	for kind, create := range map[string]func(string) (*newFile, error){"unnamed": createUnnamed, "hidden": createHidden} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "box")
			make := func(text string) *newFile {
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
			f.discard()
			if got := names(t, dir); got != "" {
				t.Errorf("left after discard: %s", got)
			}

			f = make("two")
			if err := f.publish(false); err != nil {
				t.Fatal(err)
			}
			f.discard()
			if got := names(t, dir); got != "box" || content(t, path) != "two" {
				t.Errorf("the folder has %q", got)
			}
			if info, _ := os.Stat(path); info.Mode() != 0o600 {
				t.Errorf("mode %v, want 0600", info.Mode())
			}

			f = make("three")
			err := f.publish(false)
			if code, _ := explain(err); code != exitBusy {
				t.Errorf("over an existing file: error %v, code %d, want %d", err, code, exitBusy)
			}
			f.discard()
			if got := names(t, dir); got != "box" || content(t, path) != "two" {
				t.Errorf("the folder has %q after a refused file", got)
			}

			f = make("four")
			if err := f.publish(true); err != nil {
				t.Fatal(err)
			}
			f.discard()
			if got := names(t, dir); got != "box" || content(t, path) != "four" {
				t.Errorf("the folder has %q after a replaced file", got)
			}
		})
	}
}

// TestUnsyncedFileGetsNoName: a file that cannot be synced, here as it is
// closed, may not be whole.
func TestUnsyncedFileGetsNoName(t *testing.T) {
	for _, replace := range []bool{false, true} {
		dir := t.TempDir()
		f, err := createHidden(filepath.Join(dir, "box"))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := f.publish(replace); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("replace %v: published (%v)", replace, err)
		}
		f.discard()
		if left := names(t, dir); left != "" {
			t.Errorf("replace %v: the folder has %q", replace, left)
		}
	}
}

func TestReserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "box")
	f, err := createUnnamed(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.discard()
	if err := f.reserve(1 << 20); err != nil {
		t.Fatal(err)
	}
	if info, _ := f.Stat(); info.Size() != 1<<20 {
		t.Errorf("size %d after reserving 1 MiB", info.Size())
	}
	err = f.reserve(1 << 60)
	if code, _ := explain(err); code != exitBad || !strings.Contains(err.Error(), "are free") {
		t.Errorf("reserving 1 EiB: error %v, code %d", err, code)
	}
	if _, err := createUnnamed(filepath.Join(t.TempDir(), "none", "box")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: error %v", err)
	}
}

func TestNewFileWithLongName(t *testing.T) {
	name := strings.Repeat("é", 127) // 254 bytes of the 255 that there may be
	for kind, create := range map[string]func(string) (*newFile, error){"unnamed": createUnnamed, "hidden": createHidden} {
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
				if err := f.publish(replace); err != nil {
					t.Errorf("replace %v: %v", replace, err)
				}
				f.discard()
				if got := names(t, dir); got != name {
					t.Errorf("replace %v: the folder has %q", replace, got)
				}
			}
		})
	}
}

// A folder in which one may create, but not read, takes files as well.
func TestNewFileInUnreadableFolder(t *testing.T) {
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
	f, err := createUnnamed("box")
	if err != nil {
		t.Fatal(err)
	}
	defer f.discard()
	if err := f.publish(false); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("box"); err != nil {
		t.Error(err)
	}
}
