// Package secret keeps keys and passphrases in memory that is not swapped out
// and not dumped, and wipes it when they are no longer needed.
package secret

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Buffer is a run of bytes in pages of its own: locked, left out of core
// dumps and of forked children, and wiped by Close.
type Buffer struct {
	pages []byte
	n     int
}

var lock struct {
	sync.Mutex
	err error
}

// New returns size zero bytes. Where the limit on locked memory is too low the
// bytes are usable all the same, and LockError tells. The error is that of the
// kernel, unix.ENOMEM as a rule.
func New(size int) (*Buffer, error) {
	if size < 0 {
		panic("secret: negative size")
	}
	pageSize := unix.Getpagesize()
	length := max(1, (size+pageSize-1)/pageSize) * pageSize
	pages, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("secret: no memory for %d bytes: %w", size, err)
	}
	if err := unix.Mlock(pages); err != nil {
		lock.Lock()
		if lock.err == nil {
			lock.err = fmt.Errorf("secret: memory for keys cannot be locked: %w", err)
		}
		lock.Unlock()
	}
	// Both are hints that old kernels may refuse; the process as a whole is
	// made undumpable by HardenProcess.
	_ = unix.Madvise(pages, unix.MADV_DONTDUMP)
	_ = unix.Madvise(pages, unix.MADV_WIPEONFORK)
	return &Buffer{pages: pages, n: size}, nil
}

// Copy returns a copy of b. Errors are those of New.
func Copy(b []byte) (*Buffer, error) {
	own, err := New(len(b))
	if err != nil {
		return nil, err
	}
	copy(own.Bytes(), b)
	return own, nil
}

// Bytes returns the content. It must not be used after Close.
func (b *Buffer) Bytes() []byte { return b.pages[:b.n:b.n] }

// Len returns the length of Bytes.
func (b *Buffer) Len() int { return b.n }

// Truncate shortens the content to n bytes and wipes the rest.
func (b *Buffer) Truncate(n int) {
	Wipe(b.pages[n:b.n])
	b.n = n
}

// Close wipes the content and gives its memory back. It may be called more
// than once, and on nil.
func (b *Buffer) Close() {
	if b == nil || b.pages == nil {
		return
	}
	Wipe(b.pages)
	// Unmapping unlocks as well. It fails only for a wrong argument.
	if err := unix.Munmap(b.pages); err != nil {
		panic("secret: " + err.Error())
	}
	b.pages, b.n = nil, 0
}

// Value returns a zero T in locked memory, and the function that wipes and
// frees it. T must not contain pointers, since the garbage collector does not
// look there: Value panics if it does. Errors are those of New.
func Value[T any]() (v *T, free func(), err error) {
	values, free, err := Slice[T](1)
	if err != nil {
		return nil, nil, err
	}
	return &values[0], free, nil
}

// Slice is as Value, for n values in a row.
func Slice[T any](n int) (values []T, free func(), err error) {
	if t := reflect.TypeFor[T](); hasPointers(t) {
		panic("secret: " + t.String() + " contains pointers")
	}
	var one T
	b, err := New(n * int(unsafe.Sizeof(one)))
	if err != nil {
		return nil, nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b.pages))), n), b.Close, nil
}

func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	}
	return true
}

// Wipe overwrites b with zeros, also where the compiler could prove that
// nobody reads them.
func Wipe(b []byte) {
	clear(b)
	runtime.KeepAlive(unsafe.SliceData(b))
}

// LockError returns the first failure to lock memory, or nil.
func LockError() error {
	lock.Lock()
	defer lock.Unlock()
	return lock.err
}

// HardenProcess keeps the process from leaving a core dump and from being
// traced by other processes of the same user.
func HardenProcess() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("secret: core dumps cannot be turned off: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("secret: process cannot be made undumpable: %w", err)
	}
	return nil
}
