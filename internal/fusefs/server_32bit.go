//go:build 386 || arm || mips || mipsle

package fusefs

// go-fuse does not compile for these: syscall.Splice returns another type there.
const built = false

// Mount fails.
func Mount(dir string, v Volume, o Options) (*Server, error) { return nil, ErrNotBuilt }
