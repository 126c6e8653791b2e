package load

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Folder makes a folder, in memory where there is a file system with room for so
// many bytes, and else where temporary files go. storage is "tmpfs" or "disk".
func Folder(room int64) (folder, storage string, err error) {
	for _, parent := range []string{os.TempDir(), "/dev/shm", "/run/user/" + fmt.Sprint(os.Getuid())} {
		var fs unix.Statfs_t
		if err := unix.Statfs(parent, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || int64(fs.Bavail)*int64(fs.Bsize) < room {
			continue
		}
		if folder, err = os.MkdirTemp(parent, "serpcrypt-bench-"); err == nil {
			return folder, "tmpfs", nil
		}
	}
	folder, err = os.MkdirTemp("", "serpcrypt-bench-")
	return folder, "disk", err
}
