package loopdev

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/skip"
)

func attach(t *testing.T, backing string, o Options) *Device {
	t.Helper()
	if os.Geteuid() != 0 {
		skip.Skip(t, "loop devices need root")
	}
	d, err := Attach(backing, o)
	if errors.Is(err, ErrNoDevice) {
		skip.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func newFile(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backing")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func setting(t *testing.T, d *Device, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(d.Path), name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// waitGone waits until no device has the backing file any more: the kernel
// takes it away a little after the last user has let go.
func waitGone(t *testing.T, backing string) {
	t.Helper()
	for range 500 {
		found, err := Find(backing)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("a loop device still has %s", backing)
}

// TestAttachToReadOnlyDevice: the device before was made read-only.
func TestAttachToReadOnlyDevice(t *testing.T) {
	for range 20 {
		backing := newFile(t, make([]byte, 1<<20))
		before := attach(t, backing, Options{})
		if err := unix.IoctlSetPointerInt(int(before.file.Fd()), unix.BLKROSET, 1); err != nil {
			t.Fatal(err)
		}
		before.Close()
		waitGone(t, backing)
		after := attach(t, backing, Options{})
		if after.Path != before.Path { // somebody else has it now
			continue
		}
		if got := setting(t, after, "ro"); got != "0" {
			t.Errorf("ro is %s", got)
		}
		if err := unix.IoctlSetPointerInt(int(after.file.Fd()), unix.BLKROSET, 0); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("never the same device twice")
}

func TestAttach(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	backing := newFile(t, content)
	d := attach(t, backing, Options{})

	found, err := Find(backing)
	if err != nil || !slices.Equal(found, []string{d.Path}) {
		t.Errorf("find: %q, %v; want %s", found, err, d.Path)
	}
	if got := setting(t, d, "loop/autoclear"); got != "1" {
		t.Errorf("autoclear is %s", got)
	}
	if got := setting(t, d, "ro"); got != "0" {
		t.Errorf("ro is %s", got)
	}
	read := make([]byte, len(content))
	if _, err := d.file.ReadAt(read, 0); err != nil || !bytes.Equal(read, content) {
		t.Errorf("the device does not read as its backing file does: %v", err)
	}
	if _, err := d.file.WriteAt(bytes.Repeat([]byte{'x'}, 512), 1024); err != nil {
		t.Fatal(err)
	}
	if err := d.file.Sync(); err != nil {
		t.Fatal(err)
	}
	copy(content[1024:1536], bytes.Repeat([]byte{'x'}, 512))
	if got, err := os.ReadFile(backing); err != nil || !bytes.Equal(got, content) {
		t.Errorf("what was written to the device is not in the file: %v", err)
	}

	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	waitGone(t, backing)
}

func TestReadOnly(t *testing.T) {
	backing := newFile(t, make([]byte, 1<<20))
	d := attach(t, backing, Options{ReadOnly: true})
	if got := setting(t, d, "ro"); got != "1" {
		t.Errorf("ro is %s", got)
	}
	if _, err := d.file.WriteAt(make([]byte, 512), 0); err == nil {
		t.Error("a read-only device could be written")
	}
}

func TestMissingFile(t *testing.T) {
	_, err := Attach(filepath.Join(t.TempDir(), "missing"), Options{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("attach: %v", err)
	}
}

func TestDetach(t *testing.T) {
	backing := newFile(t, make([]byte, 1<<20))
	d := attach(t, backing, Options{})
	if err := Detach(d.Path); err != nil {
		t.Fatal(err)
	}
	d.Close()
	waitGone(t, backing)
	if err := Detach(d.Path); err != nil {
		t.Errorf("detach what is not attached: %v", err)
	}
}

// holes is a volume whose holes do not read as zeros.
type holes struct {
	sync.Mutex
	data      []byte
	discarded int
}

func (h *holes) Size() int64 { return int64(len(h.data)) }
func (h *holes) Sync() error { return nil }

func (h *holes) ReadAt(p []byte, off int64) (int, error) {
	h.Lock()
	defer h.Unlock()
	return copy(p, h.data[off:]), nil
}

func (h *holes) WriteAt(p []byte, off int64) (int, error) {
	h.Lock()
	defer h.Unlock()
	return copy(h.data[off:], p), nil
}

func (h *holes) Discard(off, n int64) error {
	h.Lock()
	defer h.Unlock()
	h.discarded++
	copy(h.data[off:off+n], bytes.Repeat([]byte{0xEE}, int(n)))
	return nil
}

func TestStopZeroing(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Skip(t, "loop devices need root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		skip.Skip(t, err.Error())
	}
	const size, zeroOffset = 4 << 20, 1 << 20
	h := &holes{data: bytes.Repeat([]byte{1}, size)}
	clear(h.data[zeroOffset : zeroOffset+512])
	dir := t.TempDir()
	s, err := fusefs.Mount(dir, h, fusefs.Options{Discards: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		waitGone(t, filepath.Join(dir, fusefs.FileName))
		if err := s.Unmount(); err != nil {
			t.Error(err)
		}
	})
	d := attach(t, filepath.Join(dir, fusefs.FileName), Options{})

	h.Lock()
	before := bytes.Clone(h.data)
	h.Unlock()
	err = d.StopZeroing()
	if errors.Is(err, ErrZeroing) {
		skip.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	h.Lock()
	if !bytes.Equal(h.data, before) || h.discarded != 0 {
		t.Error("the content has changed")
	}
	h.Unlock()

	// Zeroing writes zeros, and a discard still gets through.
	request := func(what uintptr, off, n uint64) {
		t.Helper()
		byteRange := [2]uint64{off, n}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, d.file.Fd(), what, uintptr(unsafe.Pointer(&byteRange))); errno != 0 {
			t.Fatal(errno)
		}
	}
	request(unix.BLKZEROOUT, 2<<20, 8192)
	h.Lock()
	if !bytes.Equal(h.data[2<<20:2<<20+8192], make([]byte, 8192)) || h.discarded != 0 {
		t.Errorf("zeroing has not written zeros, and discarded %d times", h.discarded)
	}
	h.Unlock()
	punch := uint32(unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE)
	if err := unix.Fallocate(int(d.file.Fd()), punch, 2<<20, 4096); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("zero by a hole: %v, want %v", err, unix.EOPNOTSUPP)
	}
	request(unix.BLKDISCARD, 3<<20, 8192)
	h.Lock()
	if h.discarded != 1 || h.data[3<<20] != 0xEE {
		t.Errorf("%d discards came through, want 1", h.discarded)
	}
	h.Unlock()

	full := attach(t, newFile(t, bytes.Repeat([]byte{1}, 1<<20)), Options{})
	if err := full.StopZeroing(); !errors.Is(err, ErrZeroing) {
		t.Errorf("without a sector of zeros: %v, want %v", err, ErrZeroing)
	}
}
