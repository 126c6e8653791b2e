package volume

import (
	"bytes"
	"testing"
	"unsafe"
)

func isPageAligned(p []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(p)))%4096 == 0
}

func TestScratchPool(t *testing.T) {
	pool := newScratchPool()
	var all [][]byte
	for range cap(pool) {
		b := pool.get()
		if len(b) != maxPiece || !isPageAligned(b) {
			t.Errorf("got %d bytes, aligned: %v", len(b), isPageAligned(b))
		}
		all = append(all, b)
	}
	got := make(chan []byte)
	go func() { got <- pool.get() }()
	select {
	case <-got:
		t.Error("there are more buffers than the pool may have")
	default:
	}
	pool.put(all[3])
	if b := <-got; &b[0] != &all[3][0] {
		t.Error("a buffer was made though another was free")
	}
}

// TestScratchKeepsNoPlaintext: a part of a sector, read or written, leaves none
// of it behind.
func TestScratchKeepsNoPlaintext(t *testing.T) {
	s := newStore(layoutStoreSize)
	v := layouts[0].open(t, s, Options{})
	plain := readAll(t, v, 512)
	if _, err := v.WriteAt(plain[100:200], 100); err != nil {
		t.Fatal(err)
	}
	if _, err := v.ReadAt(make([]byte, 100), 100); err != nil {
		t.Fatal(err)
	}
	used := 0
	for range cap(v.scratch) {
		b := <-v.scratch
		if b != nil {
			used++
		}
		for at := 0; at+16 <= len(plain); at += 16 {
			if bytes.Contains(b, plain[at:at+16]) {
				t.Fatalf("block %d of the sector is left", at/16)
			}
		}
		v.scratch.put(b)
	}
	if used == 0 {
		t.Error("no scratch was used")
	}
}

func TestAlignedBytes(t *testing.T) {
	for n := range 3 * 4096 {
		if b := alignedBytes(n); len(b) != n || n > 0 && !isPageAligned(b) {
			t.Fatalf("%d bytes: got %d, aligned: %v", n, len(b), isPageAligned(b))
		}
	}
}
