//go:build !386 && !arm && !mips && !mipsle

package fusefs

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// slow is a volume whose reads end only when as many are under way as there is
// room for, and a little later.
type slow struct {
	memory
	mu           sync.Mutex
	inside, most int
}

func (s *slow) ReadAt(p []byte, off int64) (int, error) {
	s.count(1)
	defer s.count(-1)
	for deadline := time.Now().Add(10 * time.Second); s.count(0) < largeReads && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.ReadAt(p, off)
}

// fail has reads fail with err from now on.
func (s *slow) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readErr = err
}

// takeMost returns how many there were at most, and forgets it.
func (s *slow) takeMost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.most
	s.most = 0
	return most
}

// count returns how many there were at most.
func (s *slow) count(change int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside += change
	s.most = max(s.most, s.inside)
	return s.most
}

// TestReadRoom reads from more threads than there is room for.
func TestReadRoom(t *testing.T) {
	needFuse(t)
	const size, readers = 1 << 20, 2*largeReads + 3
	s := &slow{memory: memory{data: bytes.Repeat([]byte("0123456789abcdef"), size/16)}}
	dir := t.TempDir()
	server, err := Mount(dir, s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
			Unmount(dir, true)
		}
	}()
	fd, err := unix.Open(dir+"/"+FileName, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	read := func(what string, want error) (most int) {
		var all sync.WaitGroup
		for range readers {
			all.Go(func() {
				got := make([]byte, size)
				n, err := unix.Pread(fd, got, 0)
				if want != nil {
					if !errors.Is(err, want) {
						t.Errorf("%s: %v, want %v", what, err, want)
					}
				} else if err != nil || n != size || !bytes.Equal(got, s.data) {
					t.Errorf("%s: %d bytes that are not those of the volume, %v", what, n, err)
				}
			})
		}
		all.Wait()
		return s.takeMost()
	}
	for _, what := range []string{"at first", "again"} {
		if most := read(what, nil); most != largeReads {
			t.Errorf("%s: %d reads at a time, want %d", what, most, largeReads)
		}
	}
	s.fail(unix.EIO)
	read("failing", unix.EIO)
	s.fail(nil)
	if most := read("after failures", nil); most != largeReads {
		t.Errorf("after failures: %d reads at a time, want %d", most, largeReads)
	}
}

func TestReleasePages(t *testing.T) {
	page := unix.Getpagesize()
	whole := bytes.Repeat([]byte{1}, 4*page)
	releasePages(whole[:page/2]) // no whole page, perhaps
	releasePages(nil)
	memory, err := unix.Mmap(-1, 0, 4*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	copy(memory, whole)
	releasePages(memory[1 : 3*page+1])
	for i, b := range memory {
		released := i >= page && i < 3*page
		if (b == 0) != released {
			t.Fatalf("byte %d is %d; released: %t", i, b, released)
		}
	}
}
