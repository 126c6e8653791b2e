package volume

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
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
