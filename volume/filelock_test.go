package volume

import (
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLocks(t *testing.T) {
	path := tempFile(t, []byte("content"))
	const readWrite, readOnly = false, true
	for _, c := range []struct {
		name          string
		first, second bool
		busy          bool
	}{
		{"two writers", readWrite, readWrite, true},
		{"reader after writer", readWrite, readOnly, true},
		{"writer after reader", readOnly, readWrite, true},
		{"two readers", readOnly, readOnly, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, err := OpenFile(path, c.first)
			if err != nil {
				t.Fatal(err)
			}
			second, err := OpenFile(path, c.second)
			if errors.Is(err, ErrBusy) != c.busy || (err == nil) == c.busy {
				t.Errorf("second: %v", err)
			}
			if err == nil {
				second.Close()
			}
			if peek, err := PeekFile(path); err != nil {
				t.Errorf("PeekFile: %v", err)
			} else {
				peek.Close()
			}
			first.Close()
			again, err := OpenFile(path, c.second)
			if err != nil {
				t.Fatalf("after the first was closed: %v", err)
			}
			again.Close()
		})
	}
}

// TestLockGoesWithTheDescriptor: the process that opens a container gives the
// descriptor to the one that serves it.
func TestLockGoesWithTheDescriptor(t *testing.T) {
	path := tempFile(t, []byte("content"))
	for _, readOnly := range []bool{false, true} {
		f, err := OpenFile(path, readOnly)
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Dup(int(f.OSFile().Fd()))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		inherited, err := NewFile(os.NewFile(uintptr(fd), path))
		if err != nil {
			t.Fatal(err)
		}
		if inherited.readOnly != readOnly {
			t.Errorf("read-only %v, want %v", inherited.readOnly, readOnly)
		}
		if _, err := OpenFile(path, false); !errors.Is(err, ErrBusy) {
			t.Errorf("while the copy is open: %v, want ErrBusy", err)
		}
		inherited.Close()
		if f, err := OpenFile(path, false); err != nil {
			t.Errorf("after the copy was closed: %v", err)
		} else {
			f.Close()
		}
	}
	pipe, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewFile(pipe); !errors.As(err, new(*FileError)) {
		t.Errorf("a pipe: %v", err)
	}
}

// qemuLocks locks single bytes of a file as qemu does, until release is called.
func qemuLocks(t *testing.T, path string, bytes ...int64) (release func()) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bytes {
		lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: b, Len: 1}
		if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
			t.Fatal(err)
		}
	}
	return func() { file.Close() }
}

// TestQemuHoldsIt: the sets of bytes are what qemu 7.2 locks; see
// cmd/serpcrypt for the program itself.
func TestQemuHoldsIt(t *testing.T) {
	path := tempFile(t, []byte("content"))
	for _, c := range []struct {
		name     string
		bytes    []int64
		readable bool
	}{
		{"qemu-io -r", []int64{100}, true},
		{"qemu-nbd -r", []int64{100, 203}, true},
		{"qemu-io", []int64{100, 101}, false},
		{"a virtual machine", []int64{100, 101, 103, 201, 203}, false},
		{"who shares nothing", []int64{200}, false},
		{"who resizes", []int64{103}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			release := qemuLocks(t, path, c.bytes...)
			defer release()
			if _, err := OpenFile(path, false); !errors.Is(err, ErrBusy) {
				t.Errorf("for writing: %v, want ErrBusy", err)
			}
			f, err := OpenFile(path, true)
			if err == nil {
				f.Close()
			}
			if (err == nil) != c.readable || err != nil && !errors.Is(err, ErrBusy) {
				t.Errorf("for reading: %v; want it open: %v", err, c.readable)
			}
		})
	}
}

// TestReaderBesideQemu: of a reader, qemu finds what it has to, and no more.
func TestReaderBesideQemu(t *testing.T) {
	f, err := OpenFile(tempFile(t, []byte("content")), true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other, err := os.Open(f.OSFile().Name())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for b, want := range map[int64]bool{
		100: true, 101: false, 103: false, // reads, writes, resizes
		200: false, 201: true, 203: true, // lets nobody do so
	} {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: b, Len: 1}
		if err := unix.FcntlFlock(other.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
			t.Fatal(err)
		}
		if got := lock.Type != unix.F_UNLCK; got != want {
			t.Errorf("byte %d: locked is %v, want %v", b, got, want)
		}
	}
}
