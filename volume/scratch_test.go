package volume

import (
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

func TestAlignedBytes(t *testing.T) {
	for n := range 3 * 4096 {
		if b := alignedBytes(n); len(b) != n || n > 0 && !isPageAligned(b) {
			t.Fatalf("%d bytes: got %d, aligned: %v", n, len(b), isPageAligned(b))
		}
	}
}
