//go:build !386 && !arm && !mips && !mipsle

package fusefs

import "github.com/hanwen/go-fuse/v2/fuse"

// The directory is fixed: nothing can be made, renamed or removed in it.

func (f *files) Create(<-chan struct{}, *fuse.CreateIn, string, *fuse.CreateOut) fuse.Status {
	return fuse.EPERM
}

func (f *files) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.EPERM
}

func (f *files) Mknod(<-chan struct{}, *fuse.MknodIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (f *files) Mkdir(<-chan struct{}, *fuse.MkdirIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (f *files) Symlink(<-chan struct{}, *fuse.InHeader, string, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (f *files) Link(<-chan struct{}, *fuse.LinkIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (f *files) Unlink(<-chan struct{}, *fuse.InHeader, string) fuse.Status { return fuse.EPERM }

func (f *files) Rmdir(<-chan struct{}, *fuse.InHeader, string) fuse.Status { return fuse.EPERM }

func (f *files) Rename(<-chan struct{}, *fuse.RenameIn, string, string) fuse.Status {
	return fuse.EPERM
}
