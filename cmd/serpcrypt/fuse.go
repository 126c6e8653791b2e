package main

import (
	"errors"
	"io/fs"

	"serpcrypt/internal/fusefs"
)

const hintLocalDir = "choose a folder on a disk of this computer"

// explainFuse adds exit code and hint to an error of fusefs.
func explainFuse(err error) error {
	var helper *fusefs.HelperError
	switch {
	case errors.Is(err, fusefs.ErrAllowOther):
		return failf(exitPermission, hintAllowOther, "%w", err)
	case errors.Is(err, fusefs.ErrNoFuse), errors.Is(err, fusefs.ErrNoHelper), errors.Is(err, fusefs.ErrNoMtab), errors.Is(err, fusefs.ErrNotBuilt),
		errors.As(err, &helper) && !errors.Is(err, fs.ErrPermission):
		return failf(exitBad, hintFuse(err), "%w", err)
	}
	return err
}

// hintFuse says what FUSE is missing.
func hintFuse(err error) string {
	switch {
	case errors.Is(err, fusefs.ErrNoFuse):
		return "load the kernel's module: modprobe fuse"
	case errors.Is(err, fusefs.ErrNoHelper):
		return hintInstall("fuse3") + ", or work as root"
	case errors.Is(err, fusefs.ErrNoMtab):
		return "as root: ln -s ../proc/self/mounts /etc/mtab"
	case errors.Is(err, fusefs.ErrForbidden):
		return hintLocalDir
	}
	return ""
}
