//go:build !386 && !arm && !mips && !mipsle

package fusefs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	rootID   = fuse.FUSE_ROOT_ID
	volumeID = rootID + 1

	// Nothing about the two inodes ever changes.
	cacheSeconds = 24 * 60 * 60

	// sectorSize is the unit in which statfs counts; blockSize is the size of
	// requests that suits best, and the granularity of discards that a loop
	// device takes from it.
	sectorSize = 512
	blockSize  = 4096
)

// files answers the kernel's requests for the directory and its one file.
type files struct {
	fuse.RawFileSystem // answers ENOSYS to what is not here
	volume             Volume
	size               int64
	options            Options
	since              time.Time
	use                *use
	room               readRoom
}

func newFiles(v Volume, o Options, u *use) *files {
	return &files{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		volume:        v,
		size:          v.Size(),
		options:       o,
		since:         time.Now(),
		use:           u,
		room:          newReadRoom(),
	}
}

func (f *files) String() string { return "serpcrypt" }

func (f *files) attributes(node uint64, a *fuse.Attr) fuse.Status {
	*a = fuse.Attr{Ino: node, Nlink: 1, Blksize: blockSize}
	a.Uid, a.Gid = uint32(os.Getuid()), uint32(os.Getgid())
	a.SetTimes(&f.since, &f.since, &f.since)
	switch node {
	case rootID:
		a.Mode = unix.S_IFDIR | f.permissions(0o500, 0o555)
		a.Nlink = 2
	case volumeID:
		a.Mode = unix.S_IFREG | f.permissions(0o600, 0o666)
		a.Size = uint64(f.size)
		a.Blocks = uint64(f.size / sectorSize)
	default:
		return fuse.ENOENT
	}
	return fuse.OK
}

func (f *files) permissions(alone, withOthers uint32) uint32 {
	mode := alone
	if f.options.AllowOther {
		mode = withOthers
	}
	if f.options.ReadOnly {
		mode &^= 0o222
	}
	return mode
}

func (f *files) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if h.NodeId != rootID || name != FileName {
		return fuse.ENOENT
	}
	out.NodeId = volumeID
	out.EntryValid, out.AttrValid = cacheSeconds, cacheSeconds
	return f.attributes(volumeID, &out.Attr)
}

func (f *files) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	out.AttrValid = cacheSeconds
	return f.attributes(in.NodeId, &out.Attr)
}

// SetAttr changes nothing. As on a block device, opening with O_TRUNC and
// setting times are accepted, and ftruncate to another size is not.
func (f *files) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if in.Valid&(fuse.FATTR_MODE|fuse.FATTR_UID|fuse.FATTR_GID) != 0 {
		return fuse.EPERM
	}
	if in.Valid&fuse.FATTR_SIZE != 0 {
		opensTruncating := in.Valid&fuse.FATTR_FH == 0 && in.Size == 0
		if f.options.ReadOnly {
			return fuse.EROFS
		}
		if !opensTruncating && in.Size != uint64(f.size) {
			return fuse.EINVAL
		}
	}
	out.AttrValid = cacheSeconds
	return f.attributes(in.NodeId, &out.Attr)
}

func (f *files) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if f.options.ReadOnly && in.Flags&unix.O_ACCMODE != unix.O_RDONLY {
		return fuse.EROFS
	}
	out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES
	f.use.openFiles.Add(1)
	f.use.requests.Add(1)
	return fuse.OK
}

func (f *files) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	f.use.requests.Add(1)
	off := int64(in.Offset)
	if off < 0 {
		return nil, fuse.EINVAL
	}
	// Nothing is past the end.
	buf = buf[:min(int64(len(buf)), int64(in.Size), max(0, f.size-off))]
	result := f.room.enter(buf)
	if len(buf) > 0 {
		if n, err := f.volume.ReadAt(buf, off); err != nil && !(errors.Is(err, io.EOF) && n == len(buf)) {
			f.options.Log.Printf("read of %d bytes at %d: %v", len(buf), off, err)
			result.Done()
			return nil, errno(err)
		}
	}
	f.use.readBytes.Add(int64(len(buf)))
	return result, fuse.OK
}

func (f *files) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	f.use.requests.Add(1)
	if f.options.ReadOnly {
		return 0, fuse.EROFS
	}
	off := int64(in.Offset)
	if off < 0 {
		return 0, fuse.EINVAL
	}
	if off >= f.size && len(data) > 0 {
		return 0, fuse.Status(unix.ENOSPC)
	}
	data = data[:min(int64(len(data)), f.size-off)]
	if err := f.writeAt(data, off); err != nil {
		return 0, errno(err)
	}
	return uint32(len(data)), fuse.OK
}

// Writev leaves it to Write, which gets the same data in one piece.
func (f *files) Writev(<-chan struct{}, *fuse.WriteIn, [][]byte) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

func (f *files) writeAt(data []byte, off int64) error {
	_, err := f.volume.WriteAt(data, off)
	if err != nil {
		if !errors.Is(err, fs.ErrClosed) {
			f.use.writeErrors.Add(1)
		}
		f.options.Log.Printf("write of %d bytes at %d: %v", len(data), off, err)
		return err
	}
	f.use.writtenBytes.Add(int64(len(data)))
	return nil
}

func (f *files) Fsync(_ <-chan struct{}, _ *fuse.FsyncIn) fuse.Status {
	f.use.requests.Add(1)
	if f.options.ReadOnly {
		return fuse.OK
	}
	err := f.volume.Sync()
	if err != nil {
		f.options.Log.Printf("sync: %v", err)
	}
	return errno(err)
}

func (f *files) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	f.use.requests.Add(1)
	if f.options.ReadOnly {
		return fuse.EROFS
	}
	off, n := int64(in.Offset), int64(in.Length)
	if off < 0 || n <= 0 || off > f.size || n > f.size-off {
		return fuse.EINVAL
	}
	switch in.Mode &^ unix.FALLOC_FL_KEEP_SIZE {
	case unix.FALLOC_FL_PUNCH_HOLE:
		if f.use.discards.Load() {
			return errno(f.volume.Discard(off, n))
		}
	case unix.FALLOC_FL_ZERO_RANGE:
		if f.options.ZeroRange {
			return errno(f.zero(off, n))
		}
	}
	return fuse.Status(unix.EOPNOTSUPP)
}

var zeros [64 << 10]byte

func (f *files) zero(off, n int64) error {
	for n > 0 {
		part := min(n, int64(len(zeros)))
		if err := f.writeAt(zeros[:part], off); err != nil {
			return err
		}
		off, n = off+part, n-part
	}
	return nil
}

// Release only counts: closing a file is no sync. For the same reason there is
// no Flush, and its default answer tells the kernel not to ask again.
func (f *files) Release(<-chan struct{}, *fuse.ReleaseIn) {
	f.use.openFiles.Add(-1)
	f.use.requests.Add(1)
}

func (f *files) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status {
	f.use.requests.Add(1)
	return fuse.OK
}

func (f *files) ReleaseDir(*fuse.ReleaseIn) {}

func (f *files) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	entries := [...]fuse.DirEntry{
		{Name: ".", Ino: rootID, Mode: unix.S_IFDIR},
		{Name: "..", Ino: rootID, Mode: unix.S_IFDIR},
		{Name: FileName, Ino: volumeID, Mode: unix.S_IFREG},
	}
	for i := min(in.Offset, uint64(len(entries))); i < uint64(len(entries)); i++ {
		entries[i].Off = i + 1
		if !out.AddDirEntry(entries[i]) {
			break
		}
	}
	return fuse.OK
}

func (f *files) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	*out = fuse.StatfsOut{
		Bsize:   blockSize,
		Frsize:  sectorSize,
		Blocks:  uint64(f.size / sectorSize),
		Files:   1,
		NameLen: 255,
	}
	return fuse.OK
}
