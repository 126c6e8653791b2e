//go:build !386 && !arm && !mips && !mipsle

package faultfs

import (
	"context"
	"fmt"
	"net/rpc"
	"os"
	"os/signal"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"serpcrypt/internal/fusefs"
)

// Main is the process that serves: "faultfs FOLDER MOUNTPOINT". It takes requests
// of FS by standard input and output, and unmounts and ends when that is closed,
// be it by the death of the test.
func Main() int {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGPIPE)
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serve(folder, mountPoint string) error {
	var stat syscall.Stat_t
	if err := syscall.Stat(folder, &stat); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	d := newDisk()
	root := &fs.LoopbackRoot{Path: folder, Dev: uint64(stat.Dev)}
	root.RootNode = &node{fs.LoopbackNode{RootData: root}, d}
	_, err := fs.Mount(mountPoint, root.RootNode, &fs.Options{MountOptions: fuse.MountOptions{
		FsName:      folder,
		Name:        Program,
		DirectMount: true,
		MaxWrite:    1 << 20,
	}})
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	control := rpc.NewServer()
	if err := control.RegisterName("Control", &Control{d}); err != nil {
		return err
	}
	control.ServeConn(pipes{os.Stdin, os.Stdout})
	return fusefs.Unmount(mountPoint, true)
}

// Control has what FS calls in the other process.
type Control struct{ disk *disk }

// Ready answers as soon as the file system is mounted.
func (*Control) Ready(struct{}, *struct{}) error { return nil }

// Fail is FS.Fail.
func (c *Control) Fail(faults []Fault, _ *struct{}) error {
	c.disk.fail(faults)
	return nil
}

// Hits is FS.Hits.
func (c *Control) Hits(_ struct{}, n *int) error {
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	*n = c.disk.hits
	return nil
}

// Unsynced is FS.Unsynced.
func (c *Control) Unsynced(_ struct{}, blocks *int) error {
	*blocks = c.disk.unsynced()
	return nil
}

// CutPower is FS.CutPower.
func (c *Control) CutPower(seed uint64, lost *int) (err error) {
	*lost, err = c.disk.cutPower(seed)
	return err
}

// node is a file or folder.
type node struct {
	fs.LoopbackNode
	disk *disk
}

// WrapChild makes a node of what the loopback file system has made.
func (n *node) WrapChild(context.Context, fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{fs.LoopbackNode{RootData: n.RootData}, n.disk}
}

func (n *node) Open(_ context.Context, _ uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, err := n.disk.file(n.StableAttr(), func() (*os.File, error) {
		return os.OpenFile(n.RootData.Path+"/"+n.Path(n.Root()), os.O_RDWR, 0)
	})
	// Past the page cache, which would hold back more.
	return handle{f}, fuse.FOPEN_DIRECT_IO, errno(err)
}

// Create leaves it to Mknod and Open.
func (n *node) Create(context.Context, string, uint32, uint32, *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, syscall.ENOSYS
}

// Tmpfile makes nothing, as the kernel could not name it afterwards.
func (n *node) Tmpfile(context.Context, uint32, uint32, *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, syscall.EOPNOTSUPP
}

func (n *node) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		n.disk.forgetFrom(n.StableAttr(), int64(size))
	}
	return n.LoopbackNode.Setattr(ctx, h, in, out)
}

// handle is an open file.
type handle struct{ file *file }

func (h handle) Read(_ context.Context, p []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := h.file.readAt(p, off)
	return fuse.ReadResultData(p[:n]), errno(err)
}

func (h handle) Write(_ context.Context, p []byte, off int64) (uint32, syscall.Errno) {
	return uint32(len(p)), errno(h.file.writeAt(p, off))
}

func (h handle) Fsync(context.Context, uint32) syscall.Errno { return errno(h.file.sync()) }

func (h handle) Getattr(_ context.Context, out *fuse.AttrOut) syscall.Errno {
	var stat syscall.Stat_t
	err := syscall.Fstat(int(h.file.stored.Fd()), &stat)
	out.FromStat(&stat)
	return errno(err)
}
