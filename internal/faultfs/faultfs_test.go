package faultfs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/skip"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){Program: func() { os.Exit(Main()) }})
}

// start makes a folder with a file of so many bytes of 'a', and mounts it.
func start(t *testing.T, size int) (f *FS, stored, shown string) {
	t.Helper()
	if err := fusefs.Available(); err != nil {
		skip.Skip(t, err.Error())
	}
	folder, mountPoint := t.TempDir(), t.TempDir()
	stored, shown = filepath.Join(folder, "file"), filepath.Join(mountPoint, "file")
	if err := os.WriteFile(stored, bytes.Repeat([]byte("a"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	return Start(t, folder, mountPoint), stored, shown
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func write(t *testing.T, file *os.File, text string, off int64) {
	t.Helper()
	if _, err := file.WriteAt([]byte(text), off); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestPowerCut: until fsync nothing reaches the folder, and all is lost.
func TestPowerCut(t *testing.T) {
	f, stored, shown := start(t, 3*BlockSize)
	before := content(t, stored)
	file := open(t, shown)
	write(t, file, "bcd", BlockSize-1)
	if got := content(t, stored); !bytes.Equal(got, before) {
		t.Error("what was not synced is on the disk")
	}
	want := bytes.Clone(before)
	copy(want[BlockSize-1:], "bcd")
	if got := content(t, shown); !bytes.Equal(got, want) {
		t.Error("what was written cannot be read")
	}
	if n := f.Unsynced(); n != 2 {
		t.Errorf("%d blocks are held back, want 2", n)
	}
	if n := f.CutPower(0); n != 2 {
		t.Errorf("%d blocks are lost, want 2", n)
	}
	if got := content(t, shown); !bytes.Equal(got, before) {
		t.Error("after the power cut something else is there than what was synced")
	}

	write(t, file, "bcd", BlockSize-1)
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if n := f.CutPower(0); n != 0 {
		t.Errorf("after fsync %d blocks are lost", n)
	}
	if !bytes.Equal(content(t, stored), want) || !bytes.Equal(content(t, shown), want) {
		t.Error("what was synced is not there")
	}

	// Closing is no sync.
	write(t, file, "xyz", 0)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if n := f.CutPower(0); n != 1 || !bytes.Equal(content(t, shown), want) {
		t.Errorf("after close %d blocks are lost, want 1", n)
	}
}

// TestPowerCutByChance: some blocks are lost, and all that are not are whole.
func TestPowerCutByChance(t *testing.T) {
	const blocks = 64
	f, stored, shown := start(t, blocks*BlockSize)
	seed := rand.Uint64() | 1
	t.Logf("seed %d", seed)
	write(t, open(t, shown), string(bytes.Repeat([]byte("b"), blocks*BlockSize)), 0)
	lost := f.CutPower(seed)
	if lost == 0 || lost == blocks {
		t.Errorf("%d of %d blocks are lost", lost, blocks)
	}
	a, b := bytes.Repeat([]byte("a"), BlockSize), bytes.Repeat([]byte("b"), BlockSize)
	left, text := 0, content(t, stored)
	for i := range blocks {
		switch block := text[i*BlockSize:][:BlockSize]; {
		case bytes.Equal(block, a):
			left++
		case !bytes.Equal(block, b):
			t.Errorf("block %d is neither the old nor the new one", i)
		}
	}
	if left != lost {
		t.Errorf("%d blocks are lost, and %d are said to be", left, lost)
	}
}

func TestFaults(t *testing.T) {
	f, _, shown := start(t, 4*BlockSize)
	file := open(t, shown)
	f.Fail(
		Fault{Op: Read, From: 512, To: 1024, Err: syscall.EIO},
		Fault{Op: Write, From: 2 * BlockSize, Err: syscall.ENOSPC},
		Fault{Op: Sync, Err: syscall.EDQUOT},
	)
	read := func(off, n int64) error { _, err := file.ReadAt(make([]byte, n), off); return err }
	write := func(off, n int64) error { _, err := file.WriteAt(make([]byte, n), off); return err }
	for _, c := range []struct {
		what string
		got  error
		want error
	}{
		{"read before", read(0, 512), nil},
		{"read it", read(512, 512), syscall.EIO},
		{"read around it", read(0, BlockSize), syscall.EIO},
		{"read after", read(1024, 512), nil},
		{"write there", write(512, 512), nil},
		{"write before", write(BlockSize, BlockSize), nil},
		{"write across", write(2*BlockSize-512, 1024), syscall.ENOSPC},
		{"write at the end", write(4*BlockSize, 1), syscall.ENOSPC},
		{"sync", file.Sync(), syscall.EDQUOT},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if n := f.Hits(); n != 5 {
		t.Errorf("%d requests failed, want 5", n)
	}
	f.Fail()
	if err := errors.Join(read(0, 4*BlockSize), write(0, 4*BlockSize), file.Sync()); err != nil {
		t.Errorf("without faults: %v", err)
	}
}

// TestSizes: a file made, extended and cut has the right size at once.
func TestSizes(t *testing.T) {
	f, stored, shown := start(t, 0)
	path, copied := filepath.Join(filepath.Dir(shown), "new"), filepath.Join(filepath.Dir(stored), "new")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	write(t, file, "abc", BlockSize)
	if n := len(content(t, copied)); n != BlockSize+3 {
		t.Errorf("it has %d bytes", n)
	}
	for _, size := range []int64{BlockSize + 1, 2 * BlockSize} {
		if err := file.Truncate(size); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 2*BlockSize)
	want[BlockSize] = 'a'
	if !bytes.Equal(content(t, copied), want) || !bytes.Equal(content(t, path), want) {
		t.Error("it holds something else than was written")
	}
	if n := f.Unsynced(); n != 0 {
		t.Errorf("%d blocks are held back", n)
	}
}
