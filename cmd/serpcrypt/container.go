package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"serpcrypt/volume"
	"serpcrypt/volume/luks2"
)

// headerFlag is for commands that use a container.
func headerFlag() cli.Flag {
	return &cli.StringFlag{Name: "header", Usage: "CONTAINER has the payload alone: its header is in `FILE`"}
}

// container is an open container. Its files are one and the same unless the
// header is detached.
type container struct {
	path   string // what the person calls it
	data   *volume.File
	header *volume.File
}

// openFiles opens the payload by openData, and the header, if it is detached, by
// openHeader.
func openFiles(c *cli.Context, path string, openData, openHeader func(path string) (*volume.File, error)) (*container, error) {
	if c.IsSet("header") && c.String("header") == "" {
		return nil, usagef("--header is empty")
	}
	data, err := openData(path)
	if err != nil {
		return nil, err
	}
	file := &container{path, data, data}
	if !c.IsSet("header") {
		return file, nil
	}
	if file.header, err = openHeader(c.String("header")); err != nil {
		data.Close()
		return nil, fmt.Errorf("header: %w", err)
	}
	if err := file.checkDetached(c.String("header")); err != nil {
		file.close()
		return nil, err
	}
	return file, nil
}

// checkDetached keeps a header from being taken for payload, and overwritten.
func (f *container) checkDetached(header string) error {
	info, err := f.header.OSFile().Stat()
	if err != nil {
		return err
	}
	if isFile(f.data, info) {
		return errSameFile(header, f.path)
	}
	return nil
}

func errSameFile(header, path string) error {
	return failf(exitUsage, "leave --header out if it begins with its header", "--header %s is %s itself", header, path)
}

// lockContainer opens a container to use its payload, and locks that. A detached
// header is only read.
func lockContainer(c *cli.Context, path string, readOnly bool) (*container, error) {
	lock := func(path string) (*volume.File, error) { return openLocked(path, readOnly) }
	return openFiles(c, path, lock, volume.PeekFile)
}

// peekContainer opens a container to look at its header while others may use it.
func peekContainer(c *cli.Context, path string) (*container, error) {
	return openFiles(c, path, volume.PeekFile, volume.PeekFile)
}

// editContainer opens a container to change its header while others may use
// its payload.
func editContainer(c *cli.Context, path string) (*container, error) {
	if c.IsSet("header") {
		return openFiles(c, path, volume.PeekFile, volume.EditFile)
	}
	return openFiles(c, path, volume.EditFile, nil)
}

// readToShow reads a header that is not to be used: then fault is only what
// makes it doubtful, and not that this program does not know all that it needs.
func readToShow(at volume.Stores) (h *volume.Header, fault error) {
	h, fault = volume.ReadHeader(at)
	var requirement *luks2.RequirementError
	if errors.As(fault, &requirement) {
		fault = nil
	}
	return h, fault
}

// warnOfHeader tells of a header that is good enough, but not as it should be.
func warnOfHeader(path string, h *volume.Header) {
	for _, fault := range h.Warnings {
		warnf("%s: %s", path, errorText(fault))
	}
	if len(h.Warnings) > 0 && !screen.quiet {
		hintf("serpcrypt repair mends it")
	}
}

func (f *container) isDetached() bool { return f.header != f.data }

// stores returns where the parts lie.
func (f *container) stores() volume.Stores { return volume.Stores{Header: f.header, Data: f.data} }

// lockToChange opens a container to change its header in a way that whoever uses
// the payload would not survive, and keeps them out.
func lockToChange(c *cli.Context, path string) (*container, error) {
	lock := func(path string) (*volume.File, error) { return openLocked(path, false) }
	return openFiles(c, path, lock, volume.EditFile)
}

// isSame reports whether a file is one of the container's.
func (f *container) isSame(info os.FileInfo) bool {
	return isFile(f.data, info) || isFile(f.header, info)
}

func isFile(f *volume.File, info os.FileInfo) bool {
	own, err := f.OSFile().Stat()
	return err == nil && os.SameFile(info, own)
}

func (f *container) close() error {
	err := f.data.Close()
	if f.isDetached() {
		err = errors.Join(err, f.header.Close())
	}
	return err
}

// headerStores returns where to find all that a header says, whatever has become
// of the payload.
func (f *container) headerStores() volume.Stores { return volume.Stores{Header: f.header} }
