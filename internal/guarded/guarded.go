// Package guarded gives tests memory at whose ends reading or writing too far is
// found out.
package guarded

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Memory returns memory between two pages that must not be touched: at least n
// bytes, up to the pages on both sides. It is gone when the test ends.
func Memory(t testing.TB, n int) []byte {
	t.Helper()
	page := unix.Getpagesize()
	n = (n + page - 1) / page * page
	pages, err := unix.Mmap(-1, 0, n+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(pages) })
	for _, guard := range [][]byte{pages[:page], pages[page+n:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return pages[page : page+n : page+n]
}
