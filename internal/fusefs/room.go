//go:build !386 && !arm && !mips && !mipsle

package fusefs

import (
	"os"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// largeReads is how many large reads have their data in memory at a time.
	largeReads = 32
	// largeRead is the fewest bytes of a large one. Smaller ones are not worth
	// counting.
	largeRead = 128 << 10
)

// readRoom bounds the memory that reads take. go-fuse has a buffer for each
// request that the kernel hands out, and that is one for each thread that reads.
// So a buffer that has to wait for room gives its pages back to the kernel before,
// and after: addresses are all that the others take.
type readRoom struct{ taken chan struct{} }

func newReadRoom() readRoom { return readRoom{make(chan struct{}, largeReads)} }

// enter waits for room to fill buf, and destroys what it holds. The data of the
// request has to be answered by leave or its result.
func (r readRoom) enter(buf []byte) *readResult {
	result := &readResult{room: r, data: buf, large: len(buf) >= largeRead}
	if !result.large {
		return result
	}
	select {
	case r.taken <- struct{}{}:
	default:
		result.waited = true
		releasePages(buf)
		r.taken <- struct{}{}
	}
	return result
}

// readResult is the answer to a read, for go-fuse.
type readResult struct {
	room          readRoom
	data          []byte
	large, waited bool
}

var _ fuse.ReadResult = (*readResult)(nil)

func (r *readResult) Bytes([]byte) ([]byte, fuse.Status) { return r.data, fuse.OK }
func (r *readResult) Size() int                          { return len(r.data) }

// Slices is what go-fuse writes to the kernel without a copy, before Done. With
// Bytes alone it would be Done before.
func (r *readResult) Slices() ([][]byte, fuse.Status) { return [][]byte{r.data}, fuse.OK }

// Done is called when the kernel has the data, or when there is none to give.
func (r *readResult) Done() {
	if !r.large {
		return
	}
	if r.waited {
		releasePages(r.data)
	}
	<-r.room.taken
}

// releasePages gives the memory of buf, as far as it is whole pages, back to the
// kernel. Its bytes are then zeros.
func releasePages(buf []byte) {
	page := os.Getpagesize()
	start := -int(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))) & (page - 1)
	if n := (len(buf) - start) &^ (page - 1); n > 0 {
		_ = unix.Madvise(buf[start:start+n], unix.MADV_DONTNEED) // without it, it only takes more
	}
}
