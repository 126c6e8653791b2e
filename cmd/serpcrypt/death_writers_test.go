package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A writer works in a container that may die at any moment. It knows what may be
// found there afterwards: what fsync confirmed last, or what it wrote since.
type writer interface {
	// work writes, and reads, until it fails or ctx is done.
	work(ctx context.Context) error
	// check looks at what is found, of which the next work goes on.
	check() error
}

// patterned fills p with what a version of a thing looks like. The beginning tells
// which version it is.
func patterned(p []byte, thing, version uint64) {
	random := rand.NewPCG(thing, version)
	for i := 0; i < len(p); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], random.Uint64())
		copy(p[i:], word[:])
	}
	binary.LittleEndian.PutUint64(p, version)
}

// versionOf returns which version of the thing p is.
func versionOf(p []byte, thing uint64) (uint64, error) {
	if len(p) < 8 {
		return 0, fmt.Errorf("it has %d bytes", len(p))
	}
	version := binary.LittleEndian.Uint64(p)
	want := make([]byte, len(p))
	patterned(want, thing, version)
	if !bytes.Equal(p, want) {
		return 0, errors.New("it is no version that was ever written")
	}
	return version, nil
}

// versions are those that a thing may be found in. The first is confirmed.
type versions []uint64

// found says what is wrong with finding version v. Otherwise that is the only one
// from now on.
func (all *versions) found(v uint64) error {
	if !slices.Contains(*all, v) {
		return fmt.Errorf("it is in version %d, and may be in %v", v, *all)
	}
	*all = versions{v}
	return nil
}

// confirm makes the last version the only one.
func (all *versions) confirm() { *all = (*all)[len(*all)-1:] }

const deathBlock = 4096

// blockWriter writes to blocks of the file of a raw volume, some of which are
// its own.
type blockWriter struct {
	path   string
	first  int
	blocks []versions
	random *rand.Rand
	last   uint64 // version
	// discards some blocks before they are written. If something happens in between,
	// nobody knows what is in them.
	discards bool
}

// newBlockWriter writes the first version of each block.
func newBlockWriter(path string, first, n int, random *rand.Rand) (*blockWriter, error) {
	w := &blockWriter{path: path, first: first, blocks: make([]versions, n), random: random}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := w.write(file, 0, n); err != nil {
		return nil, err
	}
	return w, w.sync(file)
}

func (w *blockWriter) write(file *os.File, from, n int) error {
	w.last++
	p := make([]byte, n*deathBlock)
	for i := range n {
		b := from + i
		patterned(p[i*deathBlock:][:deathBlock], uint64(w.first+b), w.last)
		w.blocks[b] = append(w.blocks[b], w.last)
	}
	_, err := file.WriteAt(p, int64(w.first+from)*deathBlock)
	return err
}

func (w *blockWriter) sync(file *os.File) error {
	if err := file.Sync(); err != nil {
		return err
	}
	for b := range w.blocks {
		w.blocks[b].confirm()
	}
	return nil
}

func (w *blockWriter) work(ctx context.Context) error {
	file, err := os.OpenFile(w.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	for err == nil && ctx.Err() == nil {
		from := w.random.IntN(len(w.blocks))
		n := 1 + w.random.IntN(min(64, len(w.blocks)-from))
		switch what := w.random.IntN(16); {
		case what < 2:
			err = w.sync(file)
		case what < 6:
			err = w.read(file, from, n)
		case what == 6 && w.discards:
			err = unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(w.first+from)*deathBlock, int64(n)*deathBlock)
			if err != nil {
				break
			}
			fallthrough
		default:
			err = w.write(file, from, n)
		}
	}
	return err
}

// read reads blocks, which have to be in their last versions.
func (w *blockWriter) read(file *os.File, from, n int) error {
	p := make([]byte, n*deathBlock)
	if _, err := file.ReadAt(p, int64(w.first+from)*deathBlock); err != nil {
		return err
	}
	for i := range n {
		b := from + i
		version, err := versionOf(p[i*deathBlock:][:deathBlock], uint64(w.first+b))
		if last := w.blocks[b][len(w.blocks[b])-1]; err == nil && version != last {
			err = fmt.Errorf("it is in version %d, and was written in %d", version, last)
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", w.first+b, err)
		}
	}
	return nil
}

func (w *blockWriter) check() error {
	file, err := os.Open(w.path)
	if err != nil {
		return err
	}
	defer file.Close()
	p := make([]byte, len(w.blocks)*deathBlock)
	if _, err := file.ReadAt(p, int64(w.first)*deathBlock); err != nil {
		return err
	}
	var errs []error
	for b := range w.blocks {
		version, err := versionOf(p[b*deathBlock:][:deathBlock], uint64(w.first+b))
		if err == nil {
			err = w.blocks[b].found(version)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("block %d: %w", w.first+b, err))
		}
	}
	return errors.Join(errs...)
}

// fileWriter replaces and removes files in a folder of its own, which it makes. A
// file that is not there is in version 0.
type fileWriter struct {
	folder string
	files  []versions
	random *rand.Rand
	last   uint64 // version
}

const (
	deathFiles    = 8
	deathFileMost = 256 << 10 // bytes
)

func newFileWriter(folder string, random *rand.Rand) (*fileWriter, error) {
	w := &fileWriter{folder: folder, random: random}
	for range deathFiles {
		w.files = append(w.files, versions{0})
	}
	return w, errors.Join(
		os.Mkdir(folder, 0o700), syncPath(filepath.Dir(folder)),
		os.WriteFile(w.anchor(), nil, 0o600), syncPath(folder),
	)
}

// anchor is the path of a file that stays.
func (w *fileWriter) anchor() string { return filepath.Join(w.folder, "anchor") }

func (w *fileWriter) path(i int) string { return filepath.Join(w.folder, fmt.Sprint(i)) }

func (w *fileWriter) work(ctx context.Context) (err error) {
	for err == nil && ctx.Err() == nil {
		i := w.random.IntN(len(w.files))
		switch w.random.IntN(4) {
		case 0:
			err = w.remove(i)
		case 1:
			err = w.checkFile(i)
		default:
			err = w.replace(i)
		}
	}
	return err
}

func (w *fileWriter) replace(i int) error {
	w.last++
	p := make([]byte, 8+w.random.IntN(deathFileMost))
	patterned(p, uint64(i), w.last)
	temporary := filepath.Join(w.folder, "new")
	file, err := os.Create(temporary)
	if err != nil {
		return err
	}
	_, err = file.Write(p)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return w.change(i, w.last, func() error { return os.Rename(temporary, w.path(i)) })
}

func (w *fileWriter) remove(i int) error {
	return w.change(i, 0, func() error {
		if err := os.Remove(w.path(i)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// change brings a file to a version that is on the disk when it returns.
func (w *fileWriter) change(i int, version uint64, do func() error) error {
	w.files[i] = append(w.files[i], version)
	// When ext4's journal has just been aborted, fsync of a folder finds nothing to
	// commit and succeeds; fsync of a file flushes the disk, and fails.
	err := errors.Join(do(), syncPath(w.folder), syncPath(w.anchor()))
	if err != nil {
		return err
	}
	w.files[i].confirm()
	return nil
}

func (w *fileWriter) check() error {
	var errs []error
	for i := range w.files {
		errs = append(errs, w.checkFile(i))
	}
	return errors.Join(errs...)
}

func (w *fileWriter) checkFile(i int) error {
	version := uint64(0)
	p, err := os.ReadFile(w.path(i))
	if err == nil {
		version, err = versionOf(p, uint64(i))
	} else if errors.Is(err, fs.ErrNotExist) && slices.Contains(w.files[i], version) {
		err = nil
	}
	if err == nil {
		err = w.files[i].found(version)
	}
	if err != nil {
		return fmt.Errorf("file %s: %w", w.path(i), err)
	}
	return nil
}

// syncPath makes what happened to a file, or to the names in a folder, last.
func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}

// isOfDeath reports whether err is what somebody gets whose files are served by
// nobody any more, or no longer at the same path. ext4 finds no space where it
// cannot read what is free.
func isOfDeath(err error) bool {
	for _, number := range []syscall.Errno{syscall.ENOTCONN, syscall.ECONNABORTED, syscall.EIO, syscall.EROFS, syscall.ESHUTDOWN, syscall.ENOSPC, syscall.ENOENT} {
		if errors.Is(err, number) {
			return true
		}
	}
	return false
}
