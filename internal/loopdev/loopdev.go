// Package loopdev makes block devices of files by Linux's loop driver.
package loopdev

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const controlPath = "/dev/loop-control"

// ErrNoDevice: the kernel has no loop driver, or its devices cannot be seen
// here, as in many system containers.
var ErrNoDevice = errors.New("loopdev: there are no loop devices here")

// Options of a loop device.
type Options struct {
	ReadOnly bool
}

// mode is how files are opened.
func (o Options) mode() int {
	if o.ReadOnly {
		return os.O_RDONLY
	}
	return os.O_RDWR
}

// Device is a loop device that is held open. It goes away by itself when the
// last one to hold it lets go: this Device, or a file system mounted from it.
type Device struct {
	Path string // /dev/loopN
	file *os.File
}

// Attach makes a loop device of the file backing. It reads and writes past the
// page cache where the kernel can.
func Attach(backing string, o Options) (*Device, error) {
	file, err := openUnpolled(backing, o.mode())
	if err != nil {
		return nil, fmt.Errorf("loopdev: %w", err)
	}
	defer file.Close()

	control, err := os.OpenFile(controlPath, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoDevice
	}
	if err != nil {
		return nil, fmt.Errorf("loopdev: %w", err)
	}
	defer control.Close()

	// Between asking for a free device and taking it, others may take it.
	const attempts = 100
	for range attempts {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("loopdev: no free device: %w", err)
		}
		d, err := take(fmt.Sprintf("/dev/loop%d", number), file, o)
		if !errors.Is(err, unix.EBUSY) {
			return d, err
		}
	}
	return nil, fmt.Errorf("loopdev: no free device: %w", unix.EBUSY)
}

// openUnpolled opens a file and does not ask the kernel to poll it, as package
// os does. Go's runtime cannot run anything else in place of that call, not
// even this process if it serves the file itself, over FUSE.
func openUnpolled(path string, mode int) (*os.File, error) {
	for {
		fd, err := unix.Open(path, mode|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), path), nil
		case unix.EINTR:
		default:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

func take(path string, backing *os.File, o Options) (*Device, error) {
	device, err := os.OpenFile(path, o.mode(), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoDevice
	}
	if err != nil {
		return nil, fmt.Errorf("loopdev: %w", err)
	}
	config := unix.LoopConfig{Fd: uint32(backing.Fd())}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
	if o.ReadOnly {
		config.Info.Flags |= unix.LO_FLAGS_READ_ONLY
	}
	name := config.Info.File_name[:]
	copy(name[:len(name)-1], backing.Name())

	err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
	if errors.Is(err, unix.EINVAL) { // no direct I/O on such a file
		config.Info.Flags &^= unix.LO_FLAGS_DIRECT_IO
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
	}
	if err == nil && !o.ReadOnly {
		// Who makes a device read-only, as by blockdev --setro, leaves that to all
		// that come after, and file systems would be mounted read-only without a word.
		err = unix.IoctlSetPointerInt(int(device.Fd()), unix.BLKROSET, 0)
	}
	if err != nil {
		device.Close()
		return nil, fmt.Errorf("loopdev: set up %s: %w", path, err)
	}
	return &Device{Path: path, file: device}, nil
}

// Close lets go of the device.
func (d *Device) Close() error { return d.file.Close() }

// Find returns the paths of the devices whose backing file is, or was, at the
// path backing. It does not touch that file.
func Find(backing string) ([]string, error) {
	return findByPath(func(path string) bool { return path == backing })
}

// FindBelow is as Find, for all files in a folder and those below it.
func FindBelow(folder string) ([]string, error) {
	return findByPath(func(path string) bool { return strings.HasPrefix(path, folder+"/") })
}

func findByPath(wanted func(path string) bool) ([]string, error) {
	blocks, err := attached()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, block := range blocks {
		if wanted(backingPath(block)) {
			found = append(found, devicePath(block))
		}
	}
	return found, nil
}

// Detach takes the backing file away from the device at path, as soon as
// nobody uses it any more. It is no error if there is none.
func Detach(path string) error {
	device, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("loopdev: %w", err)
	}
	defer device.Close()
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("loopdev: detach %s: %w", path, err)
	}
	return nil
}
