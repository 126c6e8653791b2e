//go:build !386 && !arm && !mips && !mipsle

package fusefs

import (
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const built = true

const (
	// maxBackground is how many asynchronous requests the kernel has in
	// flight, those of a loop device for example.
	maxBackground = 16
	// maxInflightBytes bounds the buffers that hold requests.
	maxInflightBytes = 16 << 20
)

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
	s := &Server{dir: dir, use: new(use), ended: make(chan struct{})}
	s.use.discards.Store(o.Discards)
	server, err := fuse.NewServer(newFiles(v, o, s.use), fmt.Sprintf("/dev/fd/%d", device), &fuse.MountOptions{
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
