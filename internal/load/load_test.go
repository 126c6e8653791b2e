package load

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/skip"
)

func start(t *testing.T) *Process {
	t.Helper()
	p, err := Start(testProcess())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestOrders(t *testing.T) {
	p := start(t)
	path := filepath.Join(t.TempDir(), "file")
	const area = 3 << 20
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := p.Do(Order{Path: path, Area: area, Write: true, Bytes: MaxBytes, Depth: 2, Once: true})
	if err != nil || a.Bytes != area || a.Time <= 0 {
		t.Fatalf("fill: %+v, %v", a, err)
	}
	content, err := os.ReadFile(path)
	if err != nil || len(content) != area || bytes.Equal(content[area-4096:], make([]byte, 4096)) {
		t.Fatalf("the file has %d bytes: %v", len(content), err)
	}
	for _, o := range []Order{
		{Bytes: 4096, Depth: 1},
		{Bytes: 4096, Depth: MaxDepth, Random: true, Write: true},
		{Bytes: MaxBytes, Depth: 3, Time: time.Millisecond},
	} {
		o.Path, o.Area = path, area
		a, err := p.Do(o)
		if err != nil || a.Bytes < int64(o.Depth*o.Bytes) || a.Bytes%int64(o.Bytes) != 0 || a.Time < o.Time {
			t.Errorf("%+v: %+v, %v", o, a, err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || bytes.Equal(after, content) {
		t.Errorf("writing at random changed nothing: %v", err)
	}
	if _, err := p.Do(Order{Path: path, Area: 4096, Write: true, Empty: true, Bytes: 4096, Depth: 1, Once: true}); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 4096 {
		t.Errorf("after 4096 bytes to the emptied file: %v, %v", info, err)
	}
	for what, o := range map[string]Order{
		"no such file": {Path: path + "x", Area: area, Bytes: 4096, Depth: 1},
		"past the end": {Path: path, Area: 4 << 20, Bytes: MaxBytes, Depth: 1, Time: time.Minute},
		"too much":     {Path: path, Area: area, Bytes: 4096, Depth: MaxDepth + 1},
		"nothing":      {Path: path, Area: area, Depth: 1},
		"no sync":      {Path: "/dev/null", Area: 4096, Write: true, Sync: true, Bytes: 4096, Depth: 1, Once: true},
	} {
		if a, err := p.Do(o); err == nil {
			t.Errorf("%s: %+v", what, a)
		}
	}
}

// resident counts the pages of a file that the page cache has.
func resident(t *testing.T, path string, size int) (n int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(p)
	pages := make([]byte, size/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&p[0])), uintptr(size), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, page := range pages {
		n += int(page & 1)
	}
	return n
}

func TestFreshAndAgain(t *testing.T) {
	var fs unix.Statfs_t
	path := filepath.Join(t.TempDir(), "file")
	if err := unix.Statfs(filepath.Dir(path), &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		skip.Skip(t, fmt.Sprintf("temporary files have nothing but a page cache here, or: %v", err))
	}
	p := start(t)
	o := Order{Path: path, Area: 8 << 20, Write: true, Bytes: MaxBytes, Depth: 1, Once: true, Sync: true}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Do(o); err != nil {
		t.Fatal(err)
	}
	before := resident(t, path, int(o.Area))
	if _, err := p.Do(Order{Path: path, Area: o.Area, Fresh: true, Bytes: 4096, Depth: 1}); err != nil {
		t.Fatal(err)
	}
	if after := resident(t, path, int(o.Area)); after >= before {
		t.Errorf("of %d pages %d are left", before, after)
	}
	if _, err := p.Do(Order{Path: path, Area: o.Area, Fresh: true, Again: true, Bytes: 4096, Depth: 1}); err != nil {
		t.Fatal(err)
	}
	if after := resident(t, path, int(o.Area)); after != before {
		t.Errorf("of %d pages %d have been read", before, after)
	}
}

// In sequence the threads take turns, at random each goes its own way; all stay
// in the area.
func TestPlaces(t *testing.T) {
	o := Order{Area: 10*4096 + 512, Bytes: 4096}
	var taken atomic.Int64
	first, second := o.places(0, &taken), o.places(1, &taken)
	for i := range int64(24) {
		next := first
		if i%3 == 0 {
			next = second
		}
		if off, ok := next(); !ok || off != i%10*4096 {
			t.Fatalf("request %d goes to %d", i, off)
		}
	}
	o.Random = true
	seen := map[int64]bool{}
	next := o.places(0, &taken)
	for range 1000 {
		off, ok := next()
		if !ok || off%4096 != 0 || off < 0 || off > 9*4096 {
			t.Fatalf("a request goes to %d", off)
		}
		seen[off] = true
	}
	if len(seen) != 10 {
		t.Errorf("1000 requests went to %d of 10 places", len(seen))
	}
	o = Order{Area: 8192, Bytes: 4096, Once: true}
	taken.Store(0)
	next = o.places(0, &taken)
	for i, want := range []bool{true, true, false, false} {
		if _, ok := next(); ok != want {
			t.Errorf("request %d of 2 is made: %v", i, ok)
		}
	}
}
