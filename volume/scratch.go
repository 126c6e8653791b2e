package volume

import (
	"runtime"
	"unsafe"
)

// scratchPool has buffers of maxPiece bytes, aligned to pages. They are few:
// who finds none waits, which bounds the memory that an open volume takes.
type scratchPool chan []byte

// Enough that each core has one to fill while others are on their way to the
// disk.
const scratchPerCore = 4

func newScratchPool() scratchPool {
	n := scratchPerCore * min(runtime.GOMAXPROCS(0), 32)
	pool := make(scratchPool, n)
	for range n {
		pool <- nil // made when first needed
	}
	return pool
}

func (p scratchPool) get() []byte {
	if b := <-p; b != nil {
		return b
	}
	return alignedBytes(maxPiece)
}

func (p scratchPool) put(b []byte) { p <- b }

// alignedBytes returns n bytes that begin a page.
func alignedBytes(n int) []byte {
	const page = 4096
	b := make([]byte, n+page-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % page
	return b[skip:][:n:n]
}
