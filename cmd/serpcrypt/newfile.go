package main

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

// newFile is a file in the making. It gets its name by publish, when it is
// whole and on the disk; until then a crash leaves nothing behind.
type newFile struct {
	sizedFile
	temporary string // its name so far, "" if it has none
}

// createUnnamed makes a file, mode 0600, that publish will call path.
func createUnnamed(path string) (*newFile, error) {
	dir := filepath.Dir(path)
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		return &newFile{sizedFile: sizedFile{os.NewFile(uintptr(fd), path), path}}, nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		return createHidden(path)
	}
	return nil, &fs.PathError{Op: "create a file in", Path: dir, Err: err}
}

// createHidden is createUnnamed for file systems that know no unnamed files:
// the file has a hidden name until it is published.
func createHidden(path string) (*newFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), hiddenName(path, "*"))
	if err != nil {
		return nil, err
	}
	return &newFile{sizedFile{f, path}, f.Name()}, nil
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

// publish brings the file to the disk and then gives it its name. If replace
// is set, a file that has the name already vanishes in the same moment;
// else that is an error and the other file stays.
func (f *newFile) publish(replace bool) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write %s to the disk: %w", f.path, err)
	}
	if err := f.giveName(replace); err != nil {
		return err
	}
	return f.syncFolder()
}

func (f *newFile) giveName(replace bool) error {
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
func (f *newFile) link(path string) error {
	var err error
	if f.temporary != "" {
		err = unix.Renameat2(unix.AT_FDCWD, f.temporary, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
			if err = os.Link(f.temporary, path); err == nil {
				err = os.Remove(f.temporary)
			}
		}
	} else {
		err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	}
	if err != nil {
		return &fs.PathError{Op: "create", Path: path, Err: err}
	}
	f.temporary = ""
	return nil
}

// linkHidden links the file to a hidden name that nobody has yet.
func (f *newFile) linkHidden() (string, error) {
	for i := 0; ; i++ {
		name := filepath.Join(filepath.Dir(f.path), hiddenName(f.path, fmt.Sprintf("%d.%d", os.Getpid(), i)))
		err := f.link(name)
		if !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}

// discard closes the file. What was not published is gone.
func (f *newFile) discard() {
	f.Close()
	f.dropName()
}

// syncFolder brings the new name in the folder to the disk.
func (f *newFile) syncFolder() error {
	dir := filepath.Dir(f.path)
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) { // one may create in it and not read it
		err = unix.Syncfs(int(f.Fd()))
		if err == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("write folder %s to the disk: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("write folder %s to the disk: %w", dir, err)
	}
	return nil
}

// dropName gives up the hidden name of a file that is never to be published.
func (f *newFile) dropName() {
	if f.temporary != "" {
		os.Remove(f.temporary)
		f.temporary = ""
	}
}
