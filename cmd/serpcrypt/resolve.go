package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// resolvePath makes path absolute and free of symbolic links, and does not
// look at what it leads to.
func resolvePath(path string) (string, error) {
	const maxLinks = 40
	for range maxLinks {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(absolute))
		if err != nil {
			return "", err
		}
		absolute = filepath.Join(folder, filepath.Base(absolute))
		target, err := os.Readlink(absolute)
		if err != nil {
			return absolute, nil // no link, or missing, or out of order
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(folder, target)
		}
		path = target
	}
	return "", fmt.Errorf("%s: %w", path, unix.ELOOP)
}
