package loopdev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// User is a loop device on a file.
type User struct {
	Path     string // /dev/loopN
	ReadOnly bool
}

// identity tells files apart, whatever their paths: a block device by its
// number, any other by its place. No file has inode 0.
type identity struct{ device, inode uint64 }

func identityOf(s *unix.Stat_t) identity {
	if s.Mode&unix.S_IFMT == unix.S_IFBLK {
		return identity{device: uint64(s.Rdev)}
	}
	return identity{uint64(s.Dev), uint64(s.Ino)}
}

// Users returns the devices whose backing file is the open file, or the block
// device that this leads to. They hold no lock on it. Who may not ask the
// devices, as root may, goes by the paths that the kernel shows: those are
// missed that have been renamed or removed since.
func Users(file *os.File) ([]User, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return nil, fmt.Errorf("loopdev: %s: %w", file.Name(), err)
	}
	blocks, err := attached()
	if err != nil {
		return nil, err
	}
	var users []User
	for _, block := range blocks {
		if backing, ok := answerOf(block); ok && backing == identityOf(&stat) {
			users = append(users, User{devicePath(block), isReadOnly(block)})
		}
	}
	return users, nil
}

// attached returns the folders in /sys of the devices that have a backing file.
func attached() ([]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("loopdev: %w", err)
	}
	for i, name := range files {
		files[i] = filepath.Dir(filepath.Dir(name))
	}
	return files, nil
}

func devicePath(block string) string { return filepath.Join("/dev", filepath.Base(block)) }

func isReadOnly(block string) bool {
	text, err := os.ReadFile(filepath.Join(block, "ro"))
	return err == nil && strings.TrimSpace(string(text)) == "1"
}

// backingPath returns where the backing file is, or was, or "".
func backingPath(block string) string {
	text, err := os.ReadFile(filepath.Join(block, "loop", "backing_file"))
	if err != nil {
		return "" // detached in between
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), " (deleted)")
}

// answerOf is backingOf within a time limit: the kernel asks the file system of
// the backing file, and one whose server hangs never answers. A file that has
// just been opened is not on such a one.
func answerOf(block string) (id identity, ok bool) {
	const limit = time.Second
	answer := make(chan identity, 1)
	go func() {
		defer close(answer)
		if id, ok := backingOf(block); ok {
			answer <- id
		}
	}()
	select {
	case id, ok = <-answer:
		return id, ok
	case <-time.After(limit):
		return identity{}, false
	}
}

func backingOf(block string) (identity, bool) {
	fd, err := unix.Open(devicePath(block), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		var info *unix.LoopInfo64
		if info, err = unix.IoctlLoopGetStatus64(fd); err == nil {
			if info.Rdevice != 0 {
				return identity{device: info.Rdevice}, true
			}
			return identity{info.Device, info.Inode}, true
		}
	}
	if errors.Is(err, unix.ENXIO) {
		return identity{}, false // detached in between
	}
	var stat unix.Stat_t
	if path := backingPath(block); path == "" || unix.Stat(path, &stat) != nil {
		return identity{}, false
	}
	return identityOf(&stat), true
}

// Backing returns the path of the file that the block device with this number
// is made of, if it is a loop device or a partition of one, and "" if not.
func Backing(major, minor uint32) string {
	block, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/block/%d:%d", major, minor))
	if err != nil {
		return ""
	}
	return wholeBackingPath(block)
}

// wholeBackingPath is backingPath, also of a partition: its folder is in that of
// the device that it is a part of.
func wholeBackingPath(block string) string {
	if path := backingPath(block); path != "" {
		return path
	}
	return backingPath(filepath.Dir(block))
}
