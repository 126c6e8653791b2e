package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// openContainer is an entry of the runtime folder.
type openContainer struct {
	entry runEntry
	state openState
	alive bool
}

// findEntries returns what is in the runtime folder, if there is one.
func findEntries() ([]runEntry, error) {
	folder, exists, err := findRuntimeFolder()
	if err != nil || !exists {
		return nil, err
	}
	return folder.entries()
}

// findOpen returns the containers that this user has open, the oldest first,
// and those whose server died. It touches no mount.
func findOpen() ([]openContainer, error) {
	entries, err := findEntries()
	if err != nil {
		return nil, err
	}
	var found []openContainer
	for _, e := range entries {
		f, err := e.load()
		if err != nil {
			return nil, err
		}
		if f != nil {
			found = append(found, *f)
		}
	}
	slices.SortFunc(found, func(a, b openContainer) int { return a.state.Since.Compare(b.state.Since) })
	return found, nil
}

// findOpening returns the containers that are about to be open.
func findOpening() ([]openContainer, error) {
	entries, err := findEntries()
	if err != nil {
		return nil, err
	}
	var opening []openContainer
	for _, e := range entries {
		if s, err := e.readState(); err == nil && s.Opening && e.alive() {
			opening = append(opening, openContainer{entry: e, state: s})
		}
	}
	return opening, nil
}

// load returns the entry as it is, or nil if it is about to open or already
// gone.
func (e runEntry) load() (*openContainer, error) {
	alive := e.alive()
	state, err := e.readState()
	neverOpened := err == nil && state.Opening
	if (neverOpened || errors.Is(err, fs.ErrNotExist)) && !alive {
		// Half made or half removed: if somebody is at it, let them finish.
		unlock, err := e.folder().lock()
		if err != nil {
			return nil, err
		}
		defer unlock()
		if _, err := os.Stat(e.path); err != nil || e.alive() {
			return nil, nil
		}
		if neverOpened {
			err = e.cleanUp() // nobody has used it, so there is nothing to tell
		} else {
			err = e.remove() // unless something is mounted from it
		}
		if err == nil {
			return nil, nil
		}
		return &openContainer{entry: e, state: state}, nil
	}
	if errors.Is(err, fs.ErrNotExist) || neverOpened {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &openContainer{e, state, alive}, nil
}

// matchOpen returns the open containers that name, the path of a mount point,
// a container or a loop device, stands for.
func matchOpen(found []openContainer, name string) ([]openContainer, error) {
	path, err := answerOf(func() (string, error) { return resolvePath(name) })
	stuck := errors.Is(err, context.DeadlineExceeded)
	if err != nil {
		path = name
	}
	var matches []openContainer
	for _, f := range found {
		if path == f.state.MountPoint || path == f.state.Container || f.state.Loop != "" && path == f.state.Loop {
			matches = append(matches, f)
		}
	}
	if len(matches) == 0 && !stuck {
		matches = sameFile(found, name)
	}
	if len(matches) == 0 {
		return nil, notOpen(name)
	}
	return matches, nil
}

func notOpen(name string) error { return failf(exitBad, hintBusy, "%s is not open", name) }

// sameFile finds a container by another name of the same file.
func sameFile(found []openContainer, name string) []openContainer {
	stat := func(path string) (os.FileInfo, error) {
		return answerOf(func() (os.FileInfo, error) { return os.Stat(path) })
	}
	info, err := stat(name)
	if err != nil || info.IsDir() {
		return nil
	}
	var matches []openContainer
	for _, f := range found {
		if other, err := stat(f.state.Container); err == nil && os.SameFile(info, other) {
			matches = append(matches, f)
		}
	}
	return matches
}

// health is the word for how an entry is.
func (f openContainer) health() string {
	switch {
	case f.alive && !f.state.Raw && f.unmounted():
		return "closing"
	case f.alive:
		return "open"
	case f.state.Failure != "":
		return "failed"
	}
	return "dead"
}

// why says what is wrong with a container whose server no longer lives.
func (f openContainer) why() string {
	if f.state.Failure != "" {
		return f.state.Failure
	}
	return "its server died, and what had not been synced is lost"
}

// unmounted reports whether only the server is left: files may be in use yet.
func (f openContainer) unmounted() bool {
	m, err := f.entry.outerMount(f.state)
	return err == nil && m == nil
}

// whereOpen returns where the container at path is open, as far as this user can
// see, or "". What goes wrong on the way only makes the message shorter.
func whereOpen(path string) string {
	found, err := findOpen()
	if err != nil {
		return ""
	}
	matches, err := matchOpen(found, path)
	if err != nil {
		return ""
	}
	for _, f := range matches {
		if f.alive {
			return f.state.MountPoint
		}
	}
	return ""
}
