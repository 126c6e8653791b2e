package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestResolvePath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"to-real": "real", "chain": "to-real", "absolute": filepath.Join(dir, "real"),
		"folder": ".", "up": "real/../real", "dangling": "missing", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for path, want := range map[string]string{
		"real": "real", "real/": "real", "./real/.": "real", "to-real": "real", "chain": "real", "absolute": "real",
		"folder/chain": "real", "up": "real", "missing": "missing", "dangling": "missing", dir + "/chain": "real",
	} {
		if got, err := resolvePath(path); err != nil || got != filepath.Join(dir, want) {
			t.Errorf("%s: %s, %v; want %s", path, got, err, want)
		}
	}
	if got, err := resolvePath("loop"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("loop: %s, %v", got, err)
	}
	if got, err := resolvePath("missing/too"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing/too: %s, %v", got, err)
	}
}
