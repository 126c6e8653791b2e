package volume

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/skip"
)

func tempFile(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "container")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFileIsAStore(t *testing.T) {
	path := tempFile(t, make([]byte, 10000))
	f, err := OpenFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("here"), 5000); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 5000)
	if n, err := f.ReadAt(p, 5000); n != 5000 || err != nil || string(p[:4]) != "here" {
		t.Errorf("read %d bytes, %v: %q", n, err, p[:4])
	}
	if n, err := f.ReadAt(p, 5001); n != 4999 || err != io.EOF {
		t.Errorf("read to the end: %d, %v", n, err)
	}
	if size, err := f.Size(); size != 10000 || err != nil {
		t.Errorf("size %d, %v", size, err)
	}
	if f.readOnly || f.IsDevice() {
		t.Errorf("read-only %v, device %v", f.readOnly, f.IsDevice())
	}
}

func TestOpenFileRefuses(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	if err := unix.Mkfifo(in("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := errors.Join(os.WriteFile(in("empty"), nil, 0o600), os.Symlink("nowhere", in("link"))); err != nil {
		t.Fatal(err)
	}
	isFileError := func(err error) bool { return errors.As(err, new(*FileError)) }
	notExist := func(err error) bool { return errors.Is(err, fs.ErrNotExist) }
	for _, c := range []struct {
		path string
		want func(error) bool
	}{
		{in("missing"), notExist},
		{in("link"), notExist},
		{in("missing/deeper"), notExist},
		{folder, isFileError},
		{in("fifo"), isFileError},
		{in("socket"), isFileError},
		{in("empty"), isFileError},
		{"/dev/null", isFileError},
		{in("empty/deeper"), func(err error) bool { return errors.Is(err, unix.ENOTDIR) }},
	} {
		for _, readOnly := range []bool{false, true} {
			f, err := OpenFile(c.path, readOnly)
			if f != nil || !c.want(err) {
				t.Errorf("OpenFile(%s, %v): %v", c.path, readOnly, err)
			}
		}
		if f, err := PeekFile(c.path); f != nil || !c.want(err) {
			t.Errorf("PeekFile(%s): %v", c.path, err)
		}
	}
}

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

func TestReadOnlyFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "container")
	if err := errors.Join(os.WriteFile(path, []byte("content"), 0o444), os.Chmod(folder, 0o755), os.Chmod(filepath.Dir(folder), 0o755)); err != nil {
		t.Fatal(err)
	}
	asOrdinaryUser(t, func() {
		if _, err := OpenFile(path, false); !errors.Is(err, ErrReadOnly) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("for writing: %v, want ErrReadOnly and fs.ErrPermission", err)
		}
		f, err := OpenFile(path, true)
		if err != nil {
			t.Errorf("for reading: %v", err)
			return
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte("x"), 0); err == nil {
			t.Error("a file opened for reading can be written")
		}
	})
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	asOrdinaryUser(t, func() {
		if _, err := OpenFile(path, true); !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrReadOnly) {
			t.Errorf("unreadable: %v, want fs.ErrPermission alone", err)
		}
	})
}

// asOrdinaryUser runs f without root's right to open everything.
func asOrdinaryUser(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Getuid() == 0 {
			// For this thread only, which ends with the goroutine.
			runtime.LockOSThread()
			const nobody = 65534
			if _, err := unix.SetfsuidRetUid(nobody); err != nil {
				t.Error(err)
				return
			}
		}
		f()
	}()
	<-done
}

func TestPunchHole(t *testing.T) {
	const mib = 1 << 20
	path := tempFile(t, bytes.Repeat([]byte{1}, 4*mib))
	f, err := OpenFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	blocks := func() int64 {
		var stat unix.Stat_t
		if err := errors.Join(f.Sync(), unix.Stat(path, &stat)); err != nil {
			t.Fatal(err)
		}
		return stat.Blocks
	}
	before := blocks()
	if err := f.PunchHole(mib, 2*mib); errors.Is(err, errors.ErrUnsupported) {
		skip.Skip(t, "the file system of temporary files cannot punch holes")
	} else if err != nil {
		t.Fatal(err)
	}
	if got, want := before-blocks(), int64(2*mib/512); got != want {
		t.Errorf("%d blocks were given back, want %d", got, want)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := slicesOf(1, mib, 0, 2*mib, 1, mib)
	if !bytes.Equal(content, want) {
		t.Error("the content beside the hole has changed")
	}
}

// slicesOf returns runs of equal bytes: value, length, value, length, ...
func slicesOf(runs ...int) []byte {
	var all []byte
	for i := 0; i < len(runs); i += 2 {
		all = append(all, bytes.Repeat([]byte{byte(runs[i])}, runs[i+1])...)
	}
	return all
}

// loopDevice makes a block device of a file.
func loopDevice(t *testing.T, path string, options ...string) string {
	t.Helper()
	if os.Getuid() != 0 {
		skip.Skip(t, "only root can make block devices")
	}
	out, err := exec.Command("losetup", append(options, "--find", "--show", path)...).CombinedOutput()
	if err != nil {
		skip.Skip(t, "no loop device: "+strings.TrimSpace(string(out)))
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("losetup --detach %s: %v: %s", device, err, out)
		}
	})
	return device
}

func TestBlockDevice(t *testing.T) {
	const size = 4<<20 + 512
	path := tempFile(t, make([]byte, size))
	device := loopDevice(t, path)
	f, err := OpenFile(device, false)
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			f.Close()
		}
	}()
	if got, err := f.Size(); got != size || err != nil || !f.IsDevice() {
		t.Errorf("size %d, want %d (%v), device: %v", got, size, err, f.IsDevice())
	}
	for _, readOnly := range []bool{false, true} {
		if _, err := OpenFile(device, readOnly); !errors.Is(err, ErrBusy) {
			t.Errorf("a second time, read-only %v: %v, want ErrBusy", readOnly, err)
		}
	}
	if peek, err := PeekFile(device); err != nil {
		t.Errorf("PeekFile: %v", err)
	} else {
		peek.Close()
	}

	formatStore(t, f, quick)
	v := open(t, f, Options{})
	plain := randomBytes(newRandom(t), int(v.Size()))
	if _, err := v.WriteAt(plain, 0); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	closed = true
	again, err := OpenFile(device, true)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if v := open(t, again, Options{ReadOnly: true}); !bytes.Equal(readAll(t, v, v.Size()), plain) {
		t.Error("read again, the device's volume differs")
	}
}

// A mounted device, for one, is held like this, without any lock on its file.
func TestHeldBlockDevice(t *testing.T) {
	device := loopDevice(t, tempFile(t, make([]byte, 1<<20)))
	holder, err := os.OpenFile(device, os.O_RDONLY|unix.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	for _, readOnly := range []bool{false, true} {
		if _, err := OpenFile(device, readOnly); !errors.Is(err, ErrBusy) {
			t.Errorf("read-only %v: %v, want ErrBusy", readOnly, err)
		}
	}
}

func TestReadOnlyBlockDevice(t *testing.T) {
	device := loopDevice(t, tempFile(t, make([]byte, 1<<20)), "--read-only")
	if _, err := OpenFile(device, false); !errors.Is(err, ErrReadOnly) {
		t.Errorf("for writing: %v, want ErrReadOnly", err)
	}
	f, err := OpenFile(device, true)
	if err != nil {
		t.Fatalf("for reading: %v", err)
	}
	f.Close()
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
