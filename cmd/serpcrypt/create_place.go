package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"serpcrypt/internal/fsprobe"
	"serpcrypt/internal/newfile"
	"serpcrypt/volume"
)

// place is where a new container goes: a new file, or a block device.
type place struct {
	store closableStore
	file  *newfile.File // nil on a device

	replaces bool         // a file that has the name already
	replaced *volume.File // that file, locked until then, if it is not empty
}

type closableStore interface {
	volume.Store
	io.Closer
}

// placeRequest is what a place must be like.
type placeRequest struct {
	path      string // what the person calls it
	size      int64  // bytes of a new file, or unsaid
	sizeFlag  string // where a person can say the size
	sparse    bool
	force     bool                    // replace what is there
	checkSize func(bytes int64) error // reports a size that is too small
}

// findPlace looks at what is there, asks where something would be lost, and
// makes sure of the space. Nothing is overwritten yet.
func findPlace(ctx context.Context, want *placeRequest) (*place, error) {
	info, err := os.Stat(want.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(want.path); err == nil {
			return nil, failf(exitBusy, "", "%s exists: it is a symbolic link that leads nowhere", want.path)
		}
		return newPlace(want, want.path, want.size)
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		return placeOfFile(ctx, want, info)
	}
	return placeOnDevice(ctx, want)
}

// newPlace makes the file.
func newPlace(want *placeRequest, path string, size int64) (*place, error) {
	if size == unsaid {
		return nil, failf(exitUsage, "say how large the file shall be, like "+want.sizeFlag+" 64M", "%s is missing", want.sizeFlag)
	}
	if err := want.checkSize(size); err != nil {
		return nil, err
	}
	file, err := newfile.Create(path)
	if err != nil {
		return nil, err
	}
	err = setLength(file, size, want.sparse)
	var store *volume.File
	if err == nil {
		store, err = volume.NewFile(file.File)
	}
	if err != nil {
		file.Discard()
		return nil, err
	}
	return &place{store: store, file: file}, nil
}

// placeOfFile replaces a file, which stays as it is until the new one is whole.
func placeOfFile(ctx context.Context, want *placeRequest, info fs.FileInfo) (*place, error) {
	if !want.force {
		return nil, existsError(want.path)
	}
	path, err := filepath.EvalSymlinks(want.path)
	if err != nil {
		return nil, err
	}
	old, err := holdReplaced(ctx, path, want.path, info.Size())
	if err != nil {
		return nil, err
	}
	size := want.size
	if size == unsaid && info.Size() > 0 {
		size = info.Size() / sizeUnit * sizeUnit
	}
	p, err := newPlace(want, path, size)
	if err != nil {
		if old != nil {
			old.Close()
		}
		return nil, err
	}
	p.replaces, p.replaced = true, old
	return p, nil
}

// holdReplaced locks the file at path, of size bytes, which the person calls
// name, until it is replaced, so that nobody loses what is open, and asks if
// something known would be lost. It returns nil for an empty file, which holds
// nothing that could be in use.
func holdReplaced(ctx context.Context, path, name string, size int64) (*volume.File, error) {
	if size == 0 {
		return nil, nil
	}
	old, err := openLocked(path, false)
	if err != nil {
		return nil, err
	}
	if err := confirmLoss(ctx, name, old); err != nil {
		old.Close()
		return nil, err
	}
	return old, nil
}

// placeOnDevice takes a block device, which nobody else may use meanwhile.
func placeOnDevice(ctx context.Context, want *placeRequest) (*place, error) {
	device, err := openLocked(want.path, false)
	if err != nil {
		return nil, err
	}
	err = want.checkDevice(device)
	if err == nil {
		err = confirmLoss(ctx, want.path, device)
	}
	if err != nil {
		device.Close()
		return nil, err
	}
	return &place{store: device}, nil
}

func (want *placeRequest) checkDevice(device *volume.File) error {
	if want.size != unsaid && want.sizeFlag != "" {
		return usagef("%s is for files: a container on a block device takes all of it", want.sizeFlag)
	}
	size, err := device.Size()
	if err != nil {
		return err
	}
	if err := want.checkSize(size); err != nil {
		return err
	}
	found, err := fsprobe.Probe(device)
	if err == nil && found != nil && !want.force {
		err = failf(exitBusy, hintForce, "%s holds %s", want.path, found.Name)
	}
	return err
}

// confirmLoss asks before something is lost: for a file if it holds what is
// known, for a device in any case, as it may hold something else.
func confirmLoss(ctx context.Context, path string, f *volume.File) error {
	found, err := fsprobe.Probe(f)
	switch {
	case err != nil:
		return err
	case found != nil:
		return confirm(ctx, fmt.Sprintf("%s holds %s, which will be lost", path, found.Name))
	case f.IsDevice():
		return confirm(ctx, fmt.Sprintf("all that is on %s will be lost", path))
	}
	return nil
}

// existsError says what is in the way, as far as it may be read.
func existsError(path string) error {
	if f, err := volume.PeekFile(path); err == nil {
		defer f.Close()
		if found, err := fsprobe.Probe(f); err == nil && found != nil {
			return failf(exitBusy, hintForce, "%s exists and holds %s", path, found.Name)
		}
	}
	return failf(exitBusy, hintForce, "%s exists", path)
}

// publish gives the finished container its name.
func (p *place) publish() error {
	if p.file == nil {
		return nil
	}
	return p.file.Publish(p.replaces)
}

// unpublish takes back a name that publish has just given. What it replaced is
// lost.
func (p *place) unpublish() error {
	if p.file == nil {
		return nil
	}
	return os.Remove(p.file.Path())
}

// close lets go of everything. An unpublished file is gone.
func (p *place) close() {
	if p.file != nil {
		p.file.Discard()
	} else {
		p.store.Close()
	}
	if p.replaced != nil {
		p.replaced.Close()
	}
}
