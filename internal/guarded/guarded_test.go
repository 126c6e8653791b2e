package guarded

import (
	"runtime/debug"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMemory(t *testing.T) {
	page := unix.Getpagesize()
	for n, want := range map[int]int{1: page, page: page, page + 1: 2 * page} {
		b := Memory(t, n)
		if len(b) != want || cap(b) != want {
			t.Errorf("%d bytes: got %d of %d, want %d", n, len(b), cap(b), want)
		}
		b[0], b[len(b)-1] = 1, 2 // may be touched
	}
}

// TestBothSides: what is just outside cannot even be read.
func TestBothSides(t *testing.T) {
	b := Memory(t, 1)
	for name, at := range map[string]int{"before": -1, "behind": len(b)} {
		if !faults(b, at) {
			t.Errorf("the byte %s can be read", name)
		}
	}
}

// faults reports whether reading a byte, counted from the first of b, is refused.
func faults(b []byte, at int) (refused bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { refused = recover() != nil }()
	sink = outside(b, at)
	return false
}

var sink byte

// outside reads a byte without a check of the bounds.
func outside(b []byte, at int) byte {
	return *(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at))
}
