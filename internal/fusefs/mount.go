package fusefs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	devicePath = "/dev/fuse"
	mtabPath   = "/etc/mtab"
	subtype    = "serpcrypt"

	// Type is the file system type in the table of mounts.
	Type = "fuse." + subtype
)

var (
	// ErrNotBuilt: this program lacks the code.
	ErrNotBuilt = errors.New("fusefs: a program for 32 bits has no FUSE")
	// ErrNoFuse: the kernel has no FUSE, or its device is missing.
	ErrNoFuse = errors.New("fusefs: there is no " + devicePath)
	// ErrNoHelper: an ordinary user needs fusermount3, and it is not installed.
	ErrNoHelper = errors.New("fusefs: fusermount3 is not installed")
	// ErrNoMtab: fusermount3 would mount, and could not unmount.
	ErrNoMtab = errors.New("fusefs: there is no " + mtabPath + ", which fusermount3 needs")
	// ErrForbidden: fusermount3 mounts nothing in a file system of this type.
	ErrForbidden = errors.New("fusefs: fusermount3 mounts nothing in such a file system")
	// ErrAllowOther: the system does not let ordinary users use AllowOther.
	ErrAllowOther = errors.New("fusefs: /etc/fuse.conf does not have user_allow_other")
)

// mount mounts at dir and returns the descriptor of the FUSE device, which is
// closed on exec. Root mounts by itself, everybody else by fusermount3.
func mount(dir string, o Options) (device int, err error) {
	if err := Available(); err != nil {
		return -1, err
	}
	if os.Geteuid() == 0 {
		device, err = mountDirect(dir, o)
		if !errors.Is(err, unix.EPERM) {
			return device, err
		}
		// Root of a container may have to ask as well.
	}
	return mountByHelper(dir, o)
}

func mountDirect(dir string, o Options) (int, error) {
	device, err := unix.Open(devicePath, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("fusefs: %s: %w", devicePath, err)
	}
	// linux/Documentation/filesystems/fuse.rst, "Mount options".
	data := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d,max_read=%d,default_permissions",
		device, unix.S_IFDIR, os.Geteuid(), os.Getegid(), maxRequest)
	if o.AllowOther {
		data += ",allow_other"
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if o.ReadOnly {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount(o.Source, dir, Type, flags, data); err != nil {
		unix.Close(device)
		return -1, fmt.Errorf("fusefs: mount at %s: %w", dir, err)
	}
	return device, nil
}

// mountByHelper has fusermount3 mount, which sends the descriptor back over
// the socket that _FUSE_COMMFD names (libfuse, util/fusermount.c).
func mountByHelper(dir string, o Options) (int, error) {
	helper, err := findMountHelper()
	if err != nil {
		return -1, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("fusefs: socketpair: %w", err)
	}
	ours, theirs := pair[0], os.NewFile(uintptr(pair[1]), "fusermount socket")
	defer unix.Close(ours)

	cmd := exec.Command(helper, "-o", helperOptions(o), "--", dir)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = append(cmd.Environ(), "_FUSE_COMMFD=3")
	err = runHelper(cmd)
	theirs.Close()
	if err != nil {
		return -1, err
	}
	device, err := receiveDescriptor(ours)
	if err != nil {
		return -1, errors.Join(err, Unmount(dir, true))
	}
	return device, nil
}

func helperOptions(o Options) string {
	escape := strings.NewReplacer(`\`, `\\`, `,`, `\,`)
	options := []string{
		"fsname=" + escape.Replace(o.Source), "subtype=" + subtype,
		fmt.Sprintf("max_read=%d", maxRequest), "default_permissions", "nosuid", "nodev",
	}
	if o.AllowOther {
		options = append(options, "allow_other")
	}
	if o.ReadOnly {
		options = append(options, "ro")
	}
	return strings.Join(options, ",")
}

func findHelper() (string, error) {
	for _, name := range []string{"fusermount3", "/usr/bin/fusermount3", "/bin/fusermount3"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoHelper
}

// findMountHelper makes sure that what the helper mounts it can unmount, too.
func findMountHelper() (string, error) {
	if _, err := os.Stat(mtabPath); err != nil {
		return "", ErrNoMtab
	}
	return findHelper()
}

func runHelper(cmd *exec.Cmd) error {
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	err := cmd.Run()
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(said.String())
	switch {
	case strings.Contains(text, "user_allow_other"):
		return ErrAllowOther
	case text == "":
		return fmt.Errorf("fusefs: fusermount3: %w", err)
	}
	return &HelperError{Text: text}
}

// HelperError is what fusermount3 says about its failure.
type HelperError struct{ Text string }

func (e *HelperError) Error() string { return "fusefs: " + e.Text }

// Is recognizes the errors that fusermount3 passes on from the kernel, and its
// own refusals: where the user may not write, and in some file systems.
func (e *HelperError) Is(target error) bool {
	text := strings.ToLower(e.Text)
	for _, number := range []unix.Errno{unix.EBUSY, unix.EPERM, unix.EACCES, unix.ENODEV, unix.ENOENT} {
		if strings.Contains(text, number.Error()) && (number == target || number.Is(target)) {
			return true
		}
	}
	if target == ErrForbidden {
		return strings.Contains(text, "mounting over filesystem type") && strings.Contains(text, "forbidden")
	}
	return target == os.ErrPermission && strings.Contains(text, "no write access")
}

func receiveDescriptor(socket int) (int, error) {
	data, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, data, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fusefs: answer of fusermount3: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return -1, errors.New("fusefs: fusermount3 sent no descriptor")
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(descriptors) != 1 {
		return -1, errors.New("fusefs: fusermount3 sent no descriptor")
	}
	return descriptors[0], nil
}

// Unmount unmounts what is mounted at dir, a FUSE mount of this user or, as
// root, any mount. If it is in use, the error wraps unix.EBUSY, or with lazy,
// it is unmounted as soon as it no longer is.
func Unmount(dir string, lazy bool) error {
	if os.Geteuid() == 0 {
		flags := unix.UMOUNT_NOFOLLOW
		if lazy {
			flags |= unix.MNT_DETACH
		}
		err := unix.Unmount(dir, flags)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("fusefs: unmount %s: %w", dir, err)
		}
	}
	helper, err := findHelper()
	if err != nil {
		return err
	}
	args := []string{"-u"}
	if lazy {
		args = append(args, "-z")
	}
	return runHelper(exec.Command(helper, append(args, "--", dir)...))
}
