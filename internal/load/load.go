// Package load makes requests of a file, many at a time, in a process of its
// own: one that serves a file and waits for it at once has threads in the way
// of each other.
package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	MaxBytes = 1 << 20 // of a request
	MaxDepth = 32
)

// Order says which requests to make of a file, and for how long. They begin at
// multiples of their size.
type Order struct {
	Path   string
	Area   int64 // bytes from the file's start that are used
	Write  bool
	Random bool
	Direct bool // past the page cache
	Empty  bool // the file is emptied first; this is no part of the time
	Fresh  bool // the page cache forgets the file first, likewise
	Again  bool // all of the area is read first, likewise
	Sync   bool // in the end, as part of the time
	Bytes  int  // of a request
	Depth  int  // requests at a time, each by a thread of its own
	Time   time.Duration
	Once   bool // as much as the area, in place of all during Time
}

// Answer is what became of an order.
type Answer struct {
	Bytes int64
	Time  time.Duration
	Error string `json:",omitempty"` // Do returns it as an error
}

// Serve makes requests as the orders that come from r say, and answers to w,
// until r ends.
func Serve(r io.Reader, w io.Writer) error {
	// A thread that waits for a request keeps others from running for a while,
	// unless there is room for all.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(MaxDepth + 2))
	b, err := newBuffers()
	if err != nil {
		return err
	}
	defer b.close()
	in, out := json.NewDecoder(r), json.NewEncoder(w)
	for {
		var o Order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		a, err := o.make(b)
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return fmt.Errorf("load: %w", err)
		}
	}
}

// buffers have room for each request of the greatest depth, in whole pages.
type buffers []byte

func newBuffers() (buffers, error) {
	b, err := unix.Mmap(-1, 0, MaxBytes*MaxDepth, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	rand.NewChaCha8([32]byte{}).Read(b)
	return b, nil
}

func (b buffers) at(i int) []byte { return b[i*MaxBytes:][:MaxBytes] }

func (b buffers) close() { _ = unix.Munmap(b) }

func (o *Order) make(b buffers) (Answer, error) {
	if o.Bytes < 1 || o.Bytes > MaxBytes || o.Depth < 1 || o.Depth > MaxDepth || o.Area < int64(o.Bytes) {
		return Answer{}, fmt.Errorf("%d requests of %d bytes in %d", o.Depth, o.Bytes, o.Area)
	}
	fd, err := o.open()
	if err != nil {
		return Answer{}, err
	}
	defer unix.Close(fd)
	if o.Fresh {
		if err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED); err != nil {
			return Answer{}, fmt.Errorf("fadvise: %w", err)
		}
	}
	if o.Again {
		first := Order{Area: o.Area, Bytes: o.Bytes, Depth: 1, Once: true}
		if _, err := first.requests(fd, b); err != nil {
			return Answer{}, err
		}
	}
	start := time.Now()
	n, err := o.requests(fd, b)
	if o.Sync {
		err = errors.Join(err, unix.Fsync(fd))
	}
	return Answer{Bytes: n, Time: time.Since(start)}, err
}

// requests makes them, and returns the bytes of all.
func (o *Order) requests(fd int, b buffers) (int64, error) {
	var taken, bytes atomic.Int64
	errs := make([]error, o.Depth)
	start := time.Now()
	var all sync.WaitGroup
	for i := range o.Depth {
		all.Go(func() {
			places := o.places(uint64(i), &taken)
			for {
				off, ok := places()
				if !ok {
					return
				}
				if errs[i] = o.request(fd, b.at(i)[:o.Bytes], off); errs[i] != nil {
					return
				}
				bytes.Add(int64(o.Bytes))
				if !o.Once && time.Since(start) >= o.Time {
					return
				}
			}
		})
	}
	all.Wait()
	return bytes.Load(), errors.Join(errs...)
}

func (o *Order) open() (int, error) {
	flags := unix.O_RDWR | unix.O_CLOEXEC
	if o.Direct {
		flags |= unix.O_DIRECT
	}
	if o.Empty {
		flags |= unix.O_TRUNC
	}
	fd, err := unix.Open(o.Path, flags, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: o.Path, Err: err}
	}
	return fd, nil
}

// places returns where the next request of a thread goes, and whether there is
// one. In sequence, the threads take turns.
func (o *Order) places(thread uint64, taken *atomic.Int64) func() (int64, bool) {
	n := o.Area / int64(o.Bytes)
	if o.Random {
		r := rand.New(rand.NewPCG(thread, uint64(time.Now().UnixNano())))
		return func() (int64, bool) { return r.Int64N(n) * int64(o.Bytes), true }
	}
	return func() (int64, bool) {
		i := taken.Add(1) - 1
		return i % n * int64(o.Bytes), !o.Once || i < n
	}
}

func (o *Order) request(fd int, p []byte, off int64) error {
	name, do := "read", unix.Pread
	if o.Write {
		name, do = "write", unix.Pwrite
	}
	n, err := do(fd, p, off)
	if err == nil && n < len(p) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("%s of %d bytes at %d: %w", name, len(p), off, err)
	}
	return nil
}
