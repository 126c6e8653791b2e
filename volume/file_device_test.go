package volume

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/skip"
)

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
