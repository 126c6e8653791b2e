package serpent

import (
	"testing"

	"golang.org/x/sys/unix"
)

// guarded returns memory between two pages that must not be touched: at least
// n bytes, up to the pages on both sides.
func guarded(t testing.TB, n int) []byte {
	t.Helper()
	page := unix.Getpagesize()
	n = (n + page - 1) / page * page
	b, err := unix.Mmap(-1, 0, n+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	for _, guard := range [][]byte{b[:page], b[page+n:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return b[page : page+n]
}
