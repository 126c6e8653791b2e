//go:build !386 && !arm && !mips && !mipsle

package fusefs

import (
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/skip"
)

// memory is a volume that counts, and fails when told to.
type memory struct {
	sync.RWMutex
	data               []byte
	syncs              int
	discarded          [][2]int64
	readErr, writeErr  error
	syncErr, trimError error
}

func (m *memory) Size() int64 { return int64(len(m.data)) }

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	m.RLock()
	defer m.RUnlock()
	if m.readErr != nil {
		return 0, m.readErr
	}
	n := copy(p, m.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.Lock()
	defer m.Unlock()
	if m.writeErr != nil {
		return 0, m.writeErr
	}
	if off+int64(len(p)) > int64(len(m.data)) {
		return 0, errors.New("write past the end")
	}
	return copy(m.data[off:], p), nil
}

func (m *memory) Sync() error {
	m.Lock()
	defer m.Unlock()
	m.syncs++
	return m.syncErr
}

func (m *memory) Discard(off, n int64) error {
	m.Lock()
	defer m.Unlock()
	m.discarded = append(m.discarded, [2]int64{off, n})
	return m.trimError
}

// testMount mounts m until the test ends, and returns the path of its file.
//
// The test process serves the mount that it reads. That goes well as long as
// it uses bare system calls: package os would have the runtime's poller look
// at the file, which waits for the server without letting it run.
func testMount(t *testing.T, m *memory, o Options) (*Server, string) {
	t.Helper()
	needFuse(t)
	dir := t.TempDir()
	s, err := Mount(dir, m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
			Unmount(dir, true)
		}
	})
	return s, filepath.Join(dir, FileName)
}

func needFuse(t *testing.T) {
	t.Helper()
	if err := unix.Access(devicePath, unix.R_OK|unix.W_OK); err != nil {
		skip.Skip(t, devicePath+" cannot be opened: "+err.Error())
	}
}

func open(t *testing.T, path string, flags int) int {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestMoreThreads(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	undo := MoreThreads()
	if got := runtime.GOMAXPROCS(0); got != 2*before {
		t.Errorf("%d threads at a time, want twice %d", got, before)
	}
	undo()
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d threads at a time in the end, want %d", got, before)
	}
}
