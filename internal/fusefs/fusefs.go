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
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
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
	if _, err := os.Stat(devicePath); err != nil {
		return ErrNoFuse
	}
	if os.Geteuid() != 0 {
		_, err := findHelper()
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

const (
	// maxRequest is the most bytes that one read or write carries. Larger
	// ones gained nothing when measured, and cost memory per request in flight.
	maxRequest = 1 << 20
	// maxBackground is how many asynchronous requests the kernel has in
	// flight, those of a loop device for example.
	maxBackground = 16
	// maxInflightBytes bounds the buffers that hold requests.
	maxInflightBytes = 16 << 20
)

// Server serves one mount, until it is unmounted.
type Server struct {
	dir   string
	files *files
	ended chan struct{}
}

// Mount mounts v at dir, an existing directory, and serves it in the
// background. dir is usable when Mount returns.
func Mount(dir string, v Volume, o Options) (*Server, error) {
	if o.Source == "" {
		o.Source = "serpcrypt"
	}
	if o.Log == nil {
		o.Log = log.New(io.Discard, "", 0)
	}
	device, err := mount(dir, o)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, files: newFiles(v, o), ended: make(chan struct{})}
	server, err := fuse.NewServer(s.files, fmt.Sprintf("/dev/fd/%d", device), &fuse.MountOptions{
		MaxWrite:                maxRequest,
		MaxBackground:           maxBackground,
		MaxInflightRequestBytes: maxInflightBytes,
		ExtraCapabilities:       fuse.CAP_ASYNC_DIO,
		DisableXAttrs:           true,
		DisableReadDirPlus:      true,
		// Splicing gains nothing for data that had to be decrypted first.
		DisableSplice: true,
		Logger:        o.Log,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fusefs: %w", err), Unmount(dir, true))
	}
	go func() {
		server.Serve()
		close(s.ended)
	}()
	return s, nil
}

// Wait returns when the mount is gone and the last request has been answered.
func (s *Server) Wait() { <-s.ended }

// Ended is closed when Wait would return.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// WriteErrors returns how many writes have failed so far.
func (s *Server) WriteErrors() int64 { return s.files.writeErrors.Load() }

// AllowDiscards turns Options.Discards on.
func (s *Server) AllowDiscards() { s.files.discards.Store(true) }

// OpenFiles returns how many times the file is open now. The mount is in use
// as long as it is. A file just closed may still count for a moment.
func (s *Server) OpenFiles() int64 { return s.files.openFiles.Load() }

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
	s.Wait()
	return nil
}

// errno returns the FUSE status that says what err says.
func errno(err error) fuse.Status {
	var number unix.Errno
	switch {
	case err == nil:
		return fuse.OK
	case errors.As(err, &number) && number != 0:
		return fuse.Status(number)
	case errors.Is(err, errors.ErrUnsupported):
		return fuse.Status(unix.EOPNOTSUPP)
	}
	return fuse.EIO
}
