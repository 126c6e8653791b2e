package volume

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/child"
	"serpcrypt/internal/skip"
)

// editFile opens a container to change its header, until the test ends.
func editFile(t *testing.T, path string) *File {
	t.Helper()
	f, err := EditFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// testHeaderLocks has two open files of the same container.
func testHeaderLocks(t *testing.T, path string) {
	first, second := editFile(t, path), editFile(t, path)
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(background, 10*lockInterval)
		t.Cleanup(cancel)
		return ctx
	}
	for _, c := range []struct {
		first, second HeaderLock
		busy          bool
	}{
		{SharedLock, SharedLock, false},
		{SharedLock, ExclusiveLock, true},
		{ExclusiveLock, SharedLock, true},
		{ExclusiveLock, ExclusiveLock, true},
	} {
		unlock, err := first.LockHeader(background, c.first)
		if err != nil {
			t.Fatal(err)
		}
		again, err := second.LockHeader(soon(), c.second)
		if c.busy != errors.Is(err, context.DeadlineExceeded) || c.busy == (err == nil) {
			t.Errorf("%v while there is %v: got %v", c.second, c.first, err)
		}
		if err == nil {
			again()
		}
		// Who waits gets it.
		got := make(chan error)
		go func() {
			unlock, err := second.LockHeader(background, c.second)
			if err == nil {
				unlock()
			}
			got <- err
		}()
		unlock()
		if err := <-got; err != nil {
			t.Errorf("%v after %v: got %v", c.second, c.first, err)
		}
	}
}

func TestHeaderLockOfFile(t *testing.T) { testHeaderLocks(t, tempFile(t, []byte("content"))) }

func TestHeaderLockOfDevice(t *testing.T) {
	device := loopDevice(t, tempFile(t, make([]byte, 1<<20)))
	deviceLockFolder = filepath.Join(t.TempDir(), "cryptsetup")
	t.Cleanup(func() { deviceLockFolder = "/run/cryptsetup" })
	testHeaderLocks(t, device)
	if info, err := os.Stat(deviceLockFolder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the locks: %v, %v", info, err)
	}
	if left, err := os.ReadDir(deviceLockFolder); err != nil || len(left) != 0 {
		t.Errorf("locks are left: %v, %v", left, err)
	}
	f := editFile(t, device)
	unlock, err := f.LockHeader(background, ExclusiveLock)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if left, err := os.ReadDir(deviceLockFolder); err != nil || len(left) != 1 || !strings.HasPrefix(left[0].Name(), "L_7:") {
		t.Errorf("the locks are %v, %v; want L_7:N", left, err)
	}
}

// TestOtherProgramHasTheLock: flock(1) stands for cryptsetup.
func TestOtherProgramHasTheLock(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		skip.Skip(t, "there is no flock")
	}
	path := tempFile(t, format(t, quick, 512).Bytes())
	other := child.Start(t, exec.Command("flock", "--exclusive", path, "sh", "-c", "echo locked; exec cat"), "", "locked")
	f := editFile(t, path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	patience := lockPatience
	lockPatience = 3 * lockInterval
	defer func() { lockPatience = patience }()
	if err := Erase(background, f); !errors.Is(err, ErrBusy) {
		t.Errorf("Erase: got %v, want ErrBusy", err)
	}
	if _, err := Format(background, Attached(f), passphrase, quick); !errors.Is(err, ErrBusy) {
		t.Errorf("Format: got %v, want ErrBusy", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("something was written (%v)", err)
	}
	other.End()
	if err := Erase(background, f); err != nil {
		t.Errorf("when the other has gone: %v", err)
	}
}

// TestNoLockIsLeft: an operation that is over keeps nobody waiting.
func TestNoLockIsLeft(t *testing.T) {
	path := tempFile(t, format(t, quick, 512).Bytes())
	f, other := editFile(t, path), editFile(t, path)
	key := unlocked(t, f)
	if _, err := AddKey(background, f, key, []byte("second"), AnySlot, quickKey); err != nil {
		t.Fatal(err)
	}
	if _, err := AddKey(background, f, key, []byte("third"), 1, quickKey); !errors.Is(err, ErrSlotUsed) {
		t.Errorf("got %v, want ErrSlotUsed", err)
	}
	if err := unix.Flock(int(other.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("the header is still locked: %v", err)
	}
}

// editingWriter changes the header while a backup of it is written.
type editingWriter struct{ header Store }

func (w editingWriter) Write(p []byte) (int, error) {
	random := ""
	return len(p), Configure(background, w.header, Texts{UUID: &random})
}

// TestSlowBackup: who waits for a backup to be written keeps nobody waiting.
func TestSlowBackup(t *testing.T) {
	path := tempFile(t, format(t, quick, 512).Bytes())
	if err := BackupHeader(background, editFile(t, path), editingWriter{editFile(t, path)}); err != nil {
		t.Error(err)
	}
}

// TestHeaderChangedMeanwhile: while a key is derived, somebody else may write
// the header.
func TestHeaderChangedMeanwhile(t *testing.T) {
	path := tempFile(t, format(t, quick, 512).Bytes())
	f, other := editFile(t, path), editFile(t, path)
	err := edit(background, f, func(c container) (func() error, error) {
		if _, err := AddKey(background, other, unlocked(t, other), []byte("second"), AnySlot, quickKey); err != nil {
			t.Fatal(err)
		}
		return func() error { t.Error("the change was made"); return nil }, nil
	})
	if !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
}

// TestEditFileBesideAnOpenContainer: nobody needs to close it to change a key.
// TestFileReplacedMeanwhile: a key that is written to the old file would be lost.
func TestFileReplacedMeanwhile(t *testing.T) {
	path := tempFile(t, []byte("content"))
	f := editFile(t, path)
	lock := func() error {
		unlock, err := f.LockHeader(background, ExclusiveLock)
		if err == nil {
			unlock()
		}
		return err
	}
	if err := lock(); err != nil {
		t.Fatal(err)
	}
	moved := path + ".moved"
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if err := lock(); !errors.Is(err, ErrChanged) || !errors.Is(err, ErrBusy) {
		t.Errorf("gone: got %v", err)
	}
	if err := os.WriteFile(path, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lock(); !errors.Is(err, ErrChanged) {
		t.Errorf("replaced: got %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(moved, path); err != nil {
		t.Fatal(err)
	}
	if err := lock(); err != nil {
		t.Errorf("found by a link: %v", err)
	}
}

func TestEditFileBesideAnOpenContainer(t *testing.T) {
	path := tempFile(t, format(t, quick, 512).Bytes())
	open, err := OpenFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	f := editFile(t, path)
	if _, err := AddKey(background, f, unlocked(t, f), []byte("second"), AnySlot, quickKey); err != nil {
		t.Error(err)
	}
	if _, err := OpenFile(path, false); !errors.Is(err, ErrBusy) {
		t.Errorf("the container's lock is gone: %v", err)
	}
}
