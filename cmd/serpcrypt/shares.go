package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"serpcrypt/internal/mounts"
)

// networkTypes are the file systems of Linux whose files are on other computers,
// or on the one that this virtual machine runs on. Whoever serves them decides
// who may do what.
var networkTypes = []string{"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "vboxsf", "virtiofs"}

// hintShare says why on a share, or in a file system that a user has mounted by
// FUSE, a permission may be missing that all else lets expect. It is "" where path,
// which is absolute, is elsewhere.
func hintShare(path string) string {
	m, err := mounts.Containing(path)
	if err != nil || m == nil || !mounts.IsFuse(m) && !slices.Contains(networkTypes, m.FSType) {
		return ""
	}
	return fmt.Sprintf("%s at %s does not let in everybody who has the permissions, and often not even root: choose a place on a disk of this computer",
		m.FSType, shellQuote(m.Mountpoint))
}

// withShareHint adds hintShare to an error about a permission.
func withShareHint(err error, path string) error {
	path, absErr := filepath.Abs(path)
	if !errors.Is(err, fs.ErrPermission) || absErr != nil {
		return err
	}
	return withHint(err, hintShare(path))
}

// ownersOnly reports whether only processes whose every user id is that of the
// one who mounted it get in: root does not, and neither does fusermount3, which
// is root for a part.
func ownersOnly(m *mounts.Mount) bool {
	return mounts.IsFuse(m) && !slices.Contains(strings.Split(m.VFSOptions, ","), "allow_other")
}
