//go:build !386 && !arm && !mips && !mipsle

package fusefs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/skip"
)

func TestBusy(t *testing.T) {
	s, path := testMount(t, &memory{data: make([]byte, 4096)}, Options{})
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.OpenFiles(); n != 1 {
		t.Errorf("%d open files, want 1", n)
	}
	if err := s.Unmount(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("unmount in use: %v, want %v", err, unix.EBUSY)
	}
	if _, err := unix.Pwrite(fd, make([]byte, 512), 0); err != nil {
		t.Errorf("write after the refused unmount: %v", err)
	}
	unix.Close(fd)
	for range 500 {
		if s.OpenFiles() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := s.OpenFiles(); n != 0 {
		t.Errorf("%d open files after closing the only one", n)
	}
	if err := s.Unmount(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Ended():
	default:
		t.Error("unmounted, but not ended")
	}
	if err := unix.Access(path, 0); err != unix.ENOENT {
		t.Errorf("after unmounting, the file gives %v", err)
	}
}

func TestLazyUnmount(t *testing.T) {
	m := &memory{data: make([]byte, 4096)}
	s, path := testMount(t, m, Options{})
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := Unmount(filepath.Dir(path), true); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Pwrite(fd, []byte("late"), 0); n != 4 || err != nil {
		t.Errorf("write after a lazy unmount: %d, %v", n, err)
	}
	select {
	case <-s.Ended():
		t.Error("ended while a file was open")
	default:
	}
	unix.Close(fd)
	<-s.Ended()
	m.Lock()
	defer m.Unlock()
	if string(m.data[:4]) != "late" {
		t.Errorf("the volume holds %q", m.data[:4])
	}
}

// TestHelper mounts as ordinary users do; root may as well.
func TestHelper(t *testing.T) {
	needFuse(t)
	if _, err := findHelper(); err != nil {
		skip.Skip(t, err.Error())
	}
	dir := t.TempDir()
	device, err := mountByHelper(dir, Options{Source: `with , and \`, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(device)
	defer Unmount(dir, true)
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if want := []byte(`with\040,\040and\040\134 ` + dir + ` fuse.serpcrypt ro,nosuid,nodev,`); !bytes.Contains(table, want) {
		t.Errorf("%q is not in the mount table:\n%s", want, table)
	}

	_, err = mountByHelper(filepath.Join(t.TempDir(), "missing"), Options{})
	var helper *HelperError
	if !errors.As(err, &helper) || !errors.Is(err, unix.ENOENT) {
		t.Errorf("mount at a missing directory: %v", err)
	}
}

func TestHelperError(t *testing.T) {
	busy := &HelperError{"fusermount3: failed to unmount /mnt: Device or resource busy"}
	if !errors.Is(busy, unix.EBUSY) || errors.Is(busy, os.ErrPermission) {
		t.Errorf("not recognized as busy: %v", busy)
	}
	for _, text := range []string{
		"fusermount3: user has no write access to mountpoint /mnt",
		"fusermount3: failed to open /dev/fuse: Permission denied",
	} {
		if err := (&HelperError{text}); !errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EBUSY) {
			t.Errorf("not recognized as missing permission: %v", err)
		}
	}
}
