package faultfs

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"
)

// disk is what all files have in common.
type disk struct {
	mu     sync.Mutex
	faults []Fault
	hits   int
	files  map[any]*file
}

func newDisk() *disk { return &disk{files: map[any]*file{}} }

// file returns the file with that identity, which open opens the first time. It
// stays open, as what it holds back outlives whoever wrote it.
func (d *disk) file(identity any, open func() (*os.File, error)) (*file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.files[identity]; f != nil {
		return f, nil
	}
	stored, err := open()
	if err != nil {
		return nil, err
	}
	f := &file{disk: d, stored: stored, held: map[int64][]byte{}}
	d.files[identity] = f
	return f, nil
}

// forgetFrom is for a file that is cut at off, if it has been opened.
func (d *disk) forgetFrom(identity any, off int64) {
	d.mu.Lock()
	f := d.files[identity]
	d.mu.Unlock()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for number, block := range f.held {
		clear(block[min(BlockSize, max(0, off-number*BlockSize)):])
		if number*BlockSize >= off {
			delete(f.held, number)
		}
	}
}

func (d *disk) fail(faults []Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = faults
}

// meet is called at the beginning of each request and returns its error.
func (d *disk) meet(op Op, off int64, n int) error {
	d.mu.Lock()
	var met Fault
	for _, f := range d.faults {
		if f.hits(op, off, n) {
			met = f
			d.hits++
			break
		}
	}
	d.mu.Unlock()
	time.Sleep(met.Delay)
	if met.Err != 0 {
		return met.Err
	}
	return nil
}

func (d *disk) unsynced() (blocks int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.files {
		f.mu.Lock()
		blocks += len(f.held)
		f.mu.Unlock()
	}
	return blocks
}

func (d *disk) cutPower(seed uint64) (lost int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	random := rand.New(rand.NewPCG(seed, 0))
	for _, f := range d.files {
		n, failed := f.cutPower(func() bool { return seed == 0 || random.IntN(2) == 0 })
		lost += n
		err = errors.Join(err, failed)
	}
	return lost, err
}

// file is one file, and what was written to it since the last sync.
type file struct {
	disk   *disk
	stored *os.File

	mu   sync.Mutex
	held map[int64][]byte // the present content of blocks, by their numbers
}

func (f *file) readAt(p []byte, off int64) (int, error) {
	if err := f.disk.meet(Read, off, len(p)); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.stored.ReadAt(p, off)
	if err != nil && err != io.EOF {
		return 0, err
	}
	p = p[:n]
	eachBlock(p, off, func(part []byte, number, inBlock int64) {
		if block := f.held[number]; block != nil {
			copy(part, block[inBlock:])
		}
	})
	return n, nil
}

func (f *file) writeAt(p []byte, off int64) error {
	if err := f.disk.meet(Write, off, len(p)); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := f.stored.Stat()
	if err == nil && info.Size() < off+int64(len(p)) {
		err = f.stored.Truncate(off + int64(len(p)))
	}
	eachBlock(p, off, func(part []byte, number, inBlock int64) {
		block := f.held[number]
		if block == nil {
			block = make([]byte, BlockSize)
			if _, readErr := f.stored.ReadAt(block, number*BlockSize); readErr != nil && readErr != io.EOF {
				err = errors.Join(err, readErr)
			}
			f.held[number] = block
		}
		copy(block[inBlock:], part)
	})
	return err
}

// eachBlock calls do for the parts of p, which lies at off, that are in one block
// each.
func eachBlock(p []byte, off int64, do func(part []byte, number, inBlock int64)) {
	for len(p) > 0 {
		inBlock := off % BlockSize
		n := min(int64(len(p)), BlockSize-inBlock)
		do(p[:n], off/BlockSize, inBlock)
		p, off = p[n:], off+n
	}
}

func (f *file) sync() error {
	if err := f.disk.meet(Sync, 0, 0); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for number := range f.held {
		if err := f.store(number); err != nil {
			return err
		}
	}
	return nil
}

// store puts a block onto the disk, up to the end of the file.
func (f *file) store(number int64) error {
	block, at := f.held[number], number*BlockSize
	delete(f.held, number)
	info, err := f.stored.Stat()
	if err != nil {
		return err
	}
	if end := max(0, info.Size()-at); end < BlockSize {
		block = block[:end]
	}
	_, err = f.stored.WriteAt(block, at)
	return err
}

// cutPower loses those blocks for which loses says so, and stores the others.
func (f *file) cutPower(loses func() bool) (lost int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for number := range f.held {
		if loses() {
			delete(f.held, number)
			lost++
		} else {
			err = errors.Join(err, f.store(number))
		}
	}
	return lost, err
}

// errno returns the number that says what err says.
func errno(err error) syscall.Errno {
	var number syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &number):
		return number
	}
	return syscall.EIO
}
