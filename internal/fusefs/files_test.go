//go:build !386 && !arm && !mips && !mipsle

package fusefs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

func TestReadWrite(t *testing.T) {
	const size = 5<<20 + 512
	m := &memory{data: make([]byte, size)}
	_, path := testMount(t, m, Options{})
	fd := open(t, path, unix.O_RDWR)

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	model := make([]byte, size)
	for i := range 300 {
		n := 1 + r.IntN([]int{512, 4096, 100_000, 2 << 20}[i%4])
		off := r.IntN(size - n + 1)
		if i%3 == 0 {
			n, off = max(512, n&^511), off&^511
			n = min(n, size-off)
		}
		part := model[off : off+n]
		if r.IntN(2) == 0 {
			for j := range part {
				part[j] = byte(r.Uint32())
			}
			if got, err := unix.Pwrite(fd, part, int64(off)); err != nil || got != n {
				t.Fatalf("write of %d bytes at %d: %d, %v", n, off, got, err)
			}
		}
		read := make([]byte, n)
		if got, err := unix.Pread(fd, read, int64(off)); err != nil || got != n {
			t.Fatalf("read of %d bytes at %d: %d, %v", n, off, got, err)
		}
		if !bytes.Equal(read, part) {
			t.Fatalf("%d bytes at %d read differently from how they were written", n, off)
		}
	}
	m.Lock()
	defer m.Unlock()
	if !bytes.Equal(m.data, model) {
		t.Error("the volume differs from what was written")
	}
}

func TestParallel(t *testing.T) {
	const part, workers = 1 << 20, 16
	m := &memory{data: make([]byte, part*workers)}
	_, path := testMount(t, m, Options{})
	fd := open(t, path, unix.O_RDWR)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			want := bytes.Repeat([]byte{byte(w + 1)}, part)
			got := make([]byte, part)
			for range 4 {
				if n, err := unix.Pwrite(fd, want, int64(w*part)); n != part || err != nil {
					t.Errorf("write %d: %d, %v", w, n, err)
				}
				if n, err := unix.Pread(fd, got, int64(w*part)); n != part || err != nil {
					t.Errorf("read %d: %d, %v", w, n, err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("part %d holds something else", w)
				}
			}
		})
	}
	all.Wait()
}

func TestLooks(t *testing.T) {
	const size = 1<<20 + 1536
	_, path := testMount(t, &memory{data: make([]byte, size)}, Options{})

	for name, want := range map[string]unix.Stat_t{
		path:               {Mode: unix.S_IFREG | 0o600, Size: size, Blocks: size / 512},
		filepath.Dir(path): {Mode: unix.S_IFDIR | 0o500},
	} {
		var got unix.Stat_t
		if err := unix.Stat(name, &got); err != nil {
			t.Fatal(err)
		}
		if got.Mode != want.Mode || got.Size != want.Size || got.Blocks != want.Blocks {
			t.Errorf("%s: mode %o, size %d, %d blocks; want %o, %d, %d", name,
				got.Mode, got.Size, got.Blocks, want.Mode, want.Size, want.Blocks)
		}
		if got.Uid != uint32(os.Getuid()) {
			t.Errorf("%s belongs to user %d", name, got.Uid)
		}
	}

	dir := open(t, filepath.Dir(path), unix.O_DIRECTORY)
	buf := make([]byte, 4096)
	n, err := unix.Getdents(dir, buf)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, names := unix.ParseDirent(buf[:n], -1, nil); len(names) != 1 || names[0] != FileName {
		t.Errorf("the directory holds %q", names)
	}

	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		t.Fatal(err)
	}
	if got := int64(fs.Blocks) * int64(fs.Frsize); got != size || fs.Bfree != 0 {
		t.Errorf("statfs: %d bytes, %d blocks free; want %d and 0", got, fs.Bfree, size)
	}
}

func TestEnd(t *testing.T) {
	const size = 8192
	m := &memory{data: make([]byte, size)}
	_, path := testMount(t, m, Options{})
	fd := open(t, path, unix.O_RDWR)
	buf := bytes.Repeat([]byte{7}, 1024)
	for _, c := range []struct {
		off       int64
		wantRead  int
		wantWrite int
		writeErr  error
	}{
		{size - 1024, 1024, 1024, nil},
		{size - 100, 100, 100, nil},
		{size, 0, -1, unix.ENOSPC},
		{size + 4096, 0, -1, unix.ENOSPC},
	} {
		if n, err := unix.Pwrite(fd, buf, c.off); n != c.wantWrite || !errors.Is(err, c.writeErr) {
			t.Errorf("write at %d: %d, %v; want %d, %v", c.off, n, err, c.wantWrite, c.writeErr)
		}
		if n, err := unix.Pread(fd, buf, c.off); n != c.wantRead || err != nil {
			t.Errorf("read at %d: %d, %v; want %d", c.off, n, err, c.wantRead)
		}
	}
	if len(m.data) != size {
		t.Errorf("the volume has grown to %d bytes", len(m.data))
	}
}

func TestFixed(t *testing.T) {
	m := &memory{data: bytes.Repeat([]byte{1}, 4096)}
	_, path := testMount(t, m, Options{})
	fd := open(t, path, unix.O_RDWR|unix.O_TRUNC)
	other := filepath.Join(filepath.Dir(path), "other")
	_, createErr := unix.Open(other, unix.O_CREAT|unix.O_WRONLY, 0o600)
	for what, c := range map[string]struct{ got, want error }{
		"truncate to the same size": {unix.Ftruncate(fd, 4096), nil},
		"truncate":                  {unix.Ftruncate(fd, 100), unix.EINVAL},
		"grow":                      {unix.Ftruncate(fd, 8192), unix.EINVAL},
		"grow by path":              {unix.Truncate(path, 8192), unix.EINVAL},
		"chmod":                     {unix.Chmod(path, 0o777), unix.EPERM},
		"times":                     {unix.Utimes(path, make([]unix.Timeval, 2)), nil},
		"create":                    {createErr, unix.EPERM},
		"mkdir":                     {unix.Mkdir(other, 0o700), unix.EPERM},
		"rename":                    {unix.Rename(path, other), unix.EPERM},
		"unlink":                    {unix.Unlink(path), unix.EPERM},
	} {
		// An ordinary user is already turned away by the directory's mode.
		if !errors.Is(c.got, c.want) && !(os.Geteuid() != 0 && errors.Is(c.got, unix.EACCES)) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	buf := make([]byte, 4096)
	if n, err := unix.Pread(fd, buf, 0); n != 4096 || err != nil || !bytes.Equal(buf, m.data) {
		t.Errorf("after it all, %d bytes are read: %v", n, err)
	}
}

func TestErrors(t *testing.T) {
	m := &memory{data: make([]byte, 4096)}
	s, path := testMount(t, m, Options{})
	fd := open(t, path, unix.O_RDWR)
	buf := make([]byte, 512)

	err := unix.Fsync(fd)
	m.Lock()
	if err != nil || m.syncs != 1 {
		t.Errorf("fsync: %v, and the volume has synced %d times", err, m.syncs)
	}
	m.readErr = errors.New("damaged")
	m.writeErr = &os.PathError{Op: "write", Path: "container", Err: unix.ENOSPC}
	m.syncErr = unix.EDQUOT
	m.Unlock()
	if _, err := unix.Pread(fd, buf, 0); err != unix.EIO {
		t.Errorf("read: %v, want %v", err, unix.EIO)
	}
	if _, err := unix.Pwrite(fd, buf, 0); err != unix.ENOSPC {
		t.Errorf("write: %v, want %v", err, unix.ENOSPC)
	}
	if err := unix.Fsync(fd); err != unix.EDQUOT {
		t.Errorf("fsync: %v, want %v", err, unix.EDQUOT)
	}
	if n := s.WriteErrors(); n != 1 {
		t.Errorf("%d failed writes counted, want 1", n)
	}
	m.Lock()
	m.writeErr = fmt.Errorf("volume: %w", fs.ErrClosed)
	m.Unlock()
	if _, err := unix.Pwrite(fd, buf, 0); err != unix.EIO {
		t.Errorf("write when the volume is closed: %v, want %v", err, unix.EIO)
	}
	if n := s.WriteErrors(); n != 1 {
		t.Errorf("%d failed writes counted with one to a closed volume, want 1", n)
	}
}

func TestErrno(t *testing.T) {
	for _, c := range []struct {
		err  error
		want fuse.Status
	}{
		{nil, fuse.OK},
		{errors.New("anything"), fuse.EIO},
		{fmt.Errorf("wrapped: %w", unix.ENOSPC), fuse.Status(unix.ENOSPC)},
		{fmt.Errorf("wrapped: %w", errors.ErrUnsupported), fuse.Status(unix.EOPNOTSUPP)},
	} {
		if got := errno(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

func TestFallocate(t *testing.T) {
	const punch = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	for _, c := range []struct {
		name    string
		options Options
		mode    uint32
		off, n  int64
		want    error
	}{
		{"discards forbidden", Options{}, punch, 0, 4096, unix.EOPNOTSUPP},
		{"discards allowed", Options{Discards: true}, punch, 4096, 8192, nil},
		{"past the end", Options{Discards: true}, punch, 4096, 1 << 20, unix.EINVAL},
		{"zero range forbidden", Options{Discards: true}, unix.FALLOC_FL_ZERO_RANGE | unix.FALLOC_FL_KEEP_SIZE, 0, 4096, unix.EOPNOTSUPP},
		{"zero range", Options{ZeroRange: true}, unix.FALLOC_FL_ZERO_RANGE, 100, 200_000, nil},
		{"allocate", Options{Discards: true, ZeroRange: true}, 0, 0, 4096, unix.EOPNOTSUPP},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &memory{data: bytes.Repeat([]byte{1}, 256<<10)}
			_, path := testMount(t, m, c.options)
			fd := open(t, path, unix.O_RDWR)
			if err := unix.Fallocate(fd, c.mode, c.off, c.n); !errors.Is(err, c.want) {
				t.Fatalf("fallocate: %v, want %v", err, c.want)
			}
			m.Lock()
			defer m.Unlock()
			discarded := c.mode == punch && c.want == nil
			if discarded != (len(m.discarded) == 1 && m.discarded[0] == [2]int64{c.off, c.n}) {
				t.Errorf("discarded: %v", m.discarded)
			}
			zeroed := c.mode != punch && c.want == nil
			want := bytes.Repeat([]byte{1}, len(m.data))
			if zeroed {
				clear(want[c.off : c.off+c.n])
			}
			if !bytes.Equal(m.data, want) {
				t.Error("the volume holds something else than it should")
			}
		})
	}
}

func TestAllowDiscards(t *testing.T) {
	m := &memory{data: make([]byte, 8192)}
	s, path := testMount(t, m, Options{})
	fd := open(t, path, unix.O_RDWR)
	punch := uint32(unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE)
	if err := unix.Fallocate(fd, punch, 0, 4096); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("before: %v, want %v", err, unix.EOPNOTSUPP)
	}
	s.AllowDiscards()
	if err := unix.Fallocate(fd, punch, 0, 4096); err != nil {
		t.Errorf("after: %v", err)
	}
	m.Lock()
	defer m.Unlock()
	if len(m.discarded) != 1 {
		t.Errorf("%d discards came through, want 1", len(m.discarded))
	}
}

func TestCounts(t *testing.T) {
	m := &memory{data: make([]byte, 64<<10)}
	s, path := testMount(t, m, Options{Discards: true})
	expect := func(what string, used bool, do func() error, read, written int64) {
		t.Helper()
		before := s.Counts()
		if err := do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		after := s.Counts()
		if (after.Requests > before.Requests) != used {
			t.Errorf("%s: %d requests before, %d after; a use: %t", what, before.Requests, after.Requests, used)
		}
		if r, w := after.ReadBytes-before.ReadBytes, after.WrittenBytes-before.WrittenBytes; r != read || w != written {
			t.Errorf("%s counts as %d bytes read and %d written, want %d and %d", what, r, w, read, written)
		}
	}
	expect("asking for free space", false, func() error { return unix.Statfs(path, new(unix.Statfs_t)) }, 0, 0)
	var fd int
	expect("open", true, func() (err error) { fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0); return err }, 0, 0)
	defer unix.Close(fd)
	expect("read", true, func() error { _, err := unix.Pread(fd, make([]byte, 5000), 3); return err }, 5000, 0)
	expect("read over the end", true, func() error { _, err := unix.Pread(fd, make([]byte, 8192), int64(len(m.data)-4096)); return err }, 4096, 0)
	expect("write", true, func() error { _, err := unix.Pwrite(fd, make([]byte, 700), 9); return err }, 0, 700)
	expect("sync", true, func() error { return unix.Fsync(fd) }, 0, 0)
	expect("discard", true, func() error {
		return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096)
	}, 0, 0)
	expect("list", true, func() error {
		dir, err := unix.Open(filepath.Dir(path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Close(dir)
		}
		return err
	}, 0, 0)
	m.Lock()
	m.writeErr = unix.ENOSPC
	m.Unlock()
	expect("a write that fails", true, func() error {
		if _, err := unix.Pwrite(fd, make([]byte, 512), 0); err != unix.ENOSPC {
			return fmt.Errorf("%w instead of ENOSPC", err)
		}
		return nil
	}, 0, 0)
}

func TestReadOnly(t *testing.T) {
	m := &memory{data: bytes.Repeat([]byte{3}, 4096)}
	_, path := testMount(t, m, Options{ReadOnly: true})
	if fd, err := unix.Open(path, unix.O_RDWR, 0); !errors.Is(err, unix.EROFS) {
		t.Errorf("open for writing: %d, %v", fd, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil || fs.Flags&unix.ST_RDONLY == 0 {
		t.Errorf("the mount is not read-only: %v", err)
	}
	buf := make([]byte, 4096)
	if n, err := unix.Pread(open(t, path, unix.O_RDONLY), buf, 0); n != 4096 || err != nil || !bytes.Equal(buf, m.data) {
		t.Errorf("read: %d, %v", n, err)
	}
}
