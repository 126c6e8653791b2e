// Package newfile makes files that get their names when they are whole and on the
// disk. Until then a crash leaves nothing behind or, in a file system where each
// file must have a name, a hidden one.
package newfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// File is a file in the making.
type File struct {
	*os.File
	path      string
	temporary string // its name so far, "" if it has none
}

// Create makes a file, mode 0600, that Publish will call path.
func Create(path string) (*File, error) {
	dir := filepath.Dir(path)
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		f := &File{File: os.NewFile(uintptr(fd), path), path: path}
		if _, err := os.Lstat(f.procPath()); err != nil { // as in a jail, and it could not get a name
			f.Close()
			return createHidden(path)
		}
		return f, nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		return createHidden(path)
	}
	return nil, &fs.PathError{Op: "create a file in", Path: dir, Err: err}
}

// CreateNameless makes a file in a folder that never gets a name. It is gone when
// it is closed.
func CreateNameless(folder string) (*File, error) {
	f, err := Create(filepath.Join(folder, "nameless"))
	if err == nil {
		f.dropName()
	}
	return f, err
}

// createHidden is Create for file systems that know no unnamed files, and where there
// is no /proc: the file has a hidden name until it is published.
func createHidden(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), hiddenName(path, "*"))
	if err != nil {
		return nil, err
	}
	return &File{f, path, f.Name()}, nil
}

// hiddenName is what a file that will be called path is called before, with
// distinct to tell it from others. It begins as the name does, but is not too
// long where that is as long as can be.
func hiddenName(path, distinct string) string {
	const most = 200 // of 255 bytes (NAME_MAX)
	base := filepath.Base(path)
	begin := strings.ToValidUTF8(base[:min(len(base), most)], "") // no half letter
	return "." + begin + "." + distinct + ".unfinished"
}

// Path is what Publish calls the file.
func (f *File) Path() string { return f.path }

// Publish brings the file to the disk and then gives it its name. If replace
// is set, a file that has the name already vanishes in the same moment;
// else that is an error and the other file stays.
func (f *File) Publish(replace bool) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("newfile: write %s to the disk: %w", f.path, err)
	}
	if err := f.giveName(replace); err != nil {
		return err
	}
	return f.syncFolder()
}

func (f *File) giveName(replace bool) error {
	if !replace {
		return f.link(f.path)
	}
	if f.temporary == "" {
		name, err := f.linkHidden()
		if err != nil {
			return err
		}
		f.temporary = name
	}
	if err := os.Rename(f.temporary, f.path); err != nil {
		return err
	}
	f.temporary = ""
	return nil
}

// link names the file path, which must not exist.
func (f *File) link(path string) error {
	var err error
	if f.temporary != "" {
		err = unix.Renameat2(unix.AT_FDCWD, f.temporary, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
			if err = os.Link(f.temporary, path); err == nil {
				err = os.Remove(f.temporary)
			}
		}
	} else {
		err = unix.Linkat(unix.AT_FDCWD, f.procPath(), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	}
	if err != nil {
		return &fs.PathError{Op: "create", Path: path, Err: err}
	}
	f.temporary = ""
	return nil
}

// procPath is the path by which a file without a name can be reached.
func (f *File) procPath() string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// linkHidden links the file to a hidden name that nobody has yet.
func (f *File) linkHidden() (string, error) {
	for i := 0; ; i++ {
		name := filepath.Join(filepath.Dir(f.path), hiddenName(f.path, fmt.Sprintf("%d.%d", os.Getpid(), i)))
		err := f.link(name)
		if !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}

// Discard closes the file. What was not published is gone.
func (f *File) Discard() {
	f.Close()
	f.dropName()
}

// syncFolder brings the new name in the folder to the disk.
func (f *File) syncFolder() error {
	dir := filepath.Dir(f.path)
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) { // one may create in it and not read it
		err = unix.Syncfs(int(f.Fd()))
		if err == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("newfile: write folder %s to the disk: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("newfile: write folder %s to the disk: %w", dir, err)
	}
	return nil
}

// dropName gives up the hidden name of a file that is not published.
func (f *File) dropName() {
	if f.temporary != "" {
		os.Remove(f.temporary)
		f.temporary = ""
	}
}
