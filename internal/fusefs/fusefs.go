// Package fusefs shows a volume as one file, named volume, in a directory of
// its own, by FUSE.
//
// The file behaves like a block device: its size is fixed, and every request
// goes straight to the volume, past the page cache.
//
// The process that serves a mount must not open files in it, nor look at it in
// other ways: it would wait for itself.
package fusefs

import (
	"io"
	"log"
	"os"
	"runtime"
	"sync/atomic"
)

// FileName is the name of the only file in the mounted directory.
const FileName = "volume"

// Volume is what a mount needs to serve. All methods are called concurrently.
// An error that wraps a unix.Errno reaches the reader or writer as that,
// errors.ErrUnsupported as EOPNOTSUPP, and any other as EIO.
type Volume interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Size() int64
	// Discard declares n bytes from off on unneeded; what they read as
	// afterwards is undefined.
	Discard(off, n int64) error
}

// Available says why this user cannot mount anything here, or nil.
func Available() error {
	if !built {
		return ErrNotBuilt
	}
	if _, err := os.Stat(devicePath); err != nil {
		return ErrNoFuse
	}
	if os.Geteuid() != 0 {
		_, err := findMountHelper()
		return err
	}
	return nil
}

// Options of a mount.
type Options struct {
	// Source is what the mount table shows as the device. Empty: serpcrypt.
	Source   string
	ReadOnly bool
	// AllowOther lets other users than the one who mounts read the file, and
	// write it unless ReadOnly.
	AllowOther bool
	// Discards passes punched holes on as Volume.Discard. Without it they are
	// refused with EOPNOTSUPP, at least until AllowDiscards.
	Discards bool
	// ZeroRange serves fallocate's FALLOC_FL_ZERO_RANGE by writing zeros.
	// Without it that is refused with EOPNOTSUPP, and the caller writes them.
	ZeroRange bool
	// Log gets messages about failing requests. Nil: nobody does.
	Log *log.Logger
}

// maxRequest is the most bytes that one read or write carries: as much as Linux
// allows unless fs.fuse.max_pages_limit is raised.
const maxRequest = 1 << 20

// MoreThreads has the runtime run twice as many threads at a time as before, in a
// process that serves mounts and does little else. To the runtime a thread that
// waits in the kernel for a request is busy until it looks again, after 20 µs to
// 10 ms, and meanwhile those that have a request wait for their turn. undo takes
// it back.
func MoreThreads() (undo func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(2 * before)
	return func() { runtime.GOMAXPROCS(before) }
}

// Server serves one mount, until it is unmounted.
type Server struct {
	dir   string
	use   *use
	ended chan struct{}
}

// use is what happens in a mount.
type use struct {
	discards     atomic.Bool // are allowed
	openFiles    atomic.Int64
	requests     atomic.Int64
	readBytes    atomic.Int64
	writtenBytes atomic.Int64
	writeErrors  atomic.Int64
}

// Counts are what there has been in a mount so far.
type Counts struct {
	// Requests that need the volume, or begin or end a use of its file. What
	// only asks for sizes or free space is none.
	Requests     int64
	ReadBytes    int64
	WrittenBytes int64
}

// Counts returns what there has been so far.
func (s *Server) Counts() Counts {
	return Counts{
		Requests:     s.use.requests.Load(),
		ReadBytes:    s.use.readBytes.Load(),
		WrittenBytes: s.use.writtenBytes.Load(),
	}
}

// Ended is closed when the mount is gone and the last request has been answered.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// WriteErrors returns how many writes have failed so far. Those that come when the
// volume has been closed (fs.ErrClosed) under a mount that is still in use do not
// count: they say nothing of what is in the volume.
func (s *Server) WriteErrors() int64 { return s.use.writeErrors.Load() }

// AllowDiscards turns Options.Discards on.
func (s *Server) AllowDiscards() { s.use.discards.Store(true) }

// OpenFiles returns how many times the file is open now. The mount is in use
// as long as it is. A file just closed may still count for a moment.
func (s *Server) OpenFiles() int64 { return s.use.openFiles.Load() }

// Unmount unmounts and waits for the end. While a file in the mount is in use
// it fails with an error that wraps unix.EBUSY, and the mount stays.
func (s *Server) Unmount() error {
	if err := Unmount(s.dir, false); err != nil {
		select {
		case <-s.ended: // somebody else was faster
			return nil
		default:
			return err
		}
	}
	<-s.ended
	return nil
}
