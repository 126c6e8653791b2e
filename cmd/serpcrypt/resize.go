package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/fsprobe"
	"serpcrypt/volume"
)

const (
	hintShrinkFirst = "make what is inside smaller first; --force cuts it off"
	hintForceShrink = "--force shrinks it all the same"
)

func resizeCommand() *cli.Command {
	return &cli.Command{
		Name:      "resize",
		Usage:     "make a container file larger or smaller",
		UsageText: "serpcrypt resize [options] CONTAINER SIZE",
		Description: `serpcrypt resize box.luks 2G
   serpcrypt resize box.luks 500M`,
		Flags: append([]cli.Flag{
			headerFlag(),
			&cli.BoolFlag{Name: "sparse", Usage: "do not fill what is added: it takes no space, and shows what of it is written"},
			&cli.BoolFlag{Name: "force", Usage: "cut off a file system that is larger than SIZE, or whose size is not known"},
		}, unlockFlags()...),
		Action: runResize,
	}
}

// resizing is a container file on its way to another size, in bytes.
type resizing struct {
	path                   string // what the person calls it
	file                   *container
	header                 *volume.Header
	old, new               int64
	oldPayload, newPayload int64
	sparse                 bool
	force                  bool
}

func runResize(c *cli.Context) error {
	args, err := exactArgs(c, "CONTAINER", "SIZE")
	if err != nil {
		return err
	}
	request := keyRequest{container: args[0]}
	if err := checkUnlockFlags(c, request); err != nil {
		return err
	}
	size, err := parseSize(args[1])
	if err != nil {
		return usagef("SIZE: %w", err)
	}
	r := &resizing{path: args[0], new: size / sizeUnit * sizeUnit, sparse: c.Bool("sparse"), force: c.Bool("force")}
	if r.file, err = lockContainer(c, r.path, false); err != nil {
		return err
	}
	defer r.file.close()
	if err := r.check(c); err != nil {
		return err
	}
	if r.newPayload < r.oldPayload {
		if err := r.checkLoss(c, request); err != nil {
			return err
		}
	}
	if err := r.file.data.CheckNamed(); err != nil { // the questions may have waited long
		return withHint(err, hintTryAgain)
	}
	if err := r.resize(c); err != nil {
		return err
	}
	if err := r.file.data.CheckNamed(); err != nil {
		return withHint(err, "the file that had the name before has got the new size")
	}
	return r.show(c.Bool("json"))
}

// check finds out whether the container can have that size at all.
func (r *resizing) check(c *cli.Context) (err error) {
	if r.file.data.IsDevice() {
		return failf(exitBad, "", "%s is a block device, and only files can be resized: a container on a device takes all of it", r.path)
	}
	if r.header, err = volume.ReadHeader(r.file.stores()); err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	if r.header.PayloadOffset == 0 && !r.file.isDetached() {
		return failf(exitBad, "serpcrypt resize --header "+shellQuote(r.path)+" CONTAINER SIZE", "%s is a detached header, whose payload is in another file", r.path)
	}
	if r.old, err = r.file.data.Size(); err != nil {
		return err
	}
	if least := (r.header.PayloadOffset/sizeUnit + 1) * sizeUnit; r.new < least {
		return usagef("%s are too few: this container takes at least %d bytes", formatSize(r.new), least)
	}
	r.oldPayload, r.newPayload = r.header.PayloadIn(r.old), r.header.PayloadIn(r.new)
	if r.header.PayloadSize == 0 {
		return nil
	}
	r.oldPayload = r.header.PayloadSize
	return r.editHeader(c)
}

// editHeader opens a detached header again, to tell it of the new size.
func (r *resizing) editHeader(c *cli.Context) error {
	if !r.file.isDetached() {
		return nil
	}
	header, err := volume.EditFile(c.String("header"))
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	r.file.header.Close()
	r.file.header = header
	return nil
}

// resizableFile makes a container file a volume.Resizable.
type resizableFile struct {
	*volume.File
	sized sizedFile
}

func (r *resizing) resizable() resizableFile {
	return resizableFile{r.file.data, sizedFile{r.file.data.OSFile(), r.path}}
}

func (f resizableFile) Reserve(size int64) error  { return f.sized.reserveBehind(size) }
func (f resizableFile) Truncate(size int64) error { return f.sized.extend(size) }

func (r *resizing) resize(c *cli.Context) error {
	p := newProgress("filling")
	defer p.finish()
	data := r.resizable()
	header := volume.Store(data)
	if r.file.isDetached() {
		header = r.file.header
	}
	return volume.Resize(c.Context, header, data, r.new, r.sparse, p.update)
}

// checkLoss needs the key, to look at what would be cut off.
func (r *resizing) checkLoss(c *cli.Context, request keyRequest) error {
	key, err := unlock(c, r.file.stores(), request)
	if err != nil {
		return err
	}
	defer key.Close()
	loss, refusal, err := r.lookInside(key)
	if err != nil {
		return err
	}
	if refusal != nil && !r.force {
		return refusal
	}
	if refusal != nil {
		return confirm(c.Context, loss)
	}
	return nil
}

// lookInside says why the container should not become smaller and what would
// be lost, or nothing if all that is inside has room.
func (r *resizing) lookInside(key *volume.Key) (loss string, refusal, err error) {
	v, err := volume.Open(r.file.stores(), key, volume.Options{ReadOnly: true})
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	all, err := fsprobe.All(v)
	found := largest(all)
	room := r.newPayload
	switch {
	case err != nil:
		return "", nil, err
	case found == nil:
		loss = fmt.Sprintf("%s holds no file system that is known: what lies behind its first %d bytes will be lost", r.path, room)
		return loss, failf(exitBad, hintForceShrink, "%s holds no file system that is known, so nothing says how much of it is in use", r.path), nil
	case found.Size == 0:
		loss = fmt.Sprintf("%s holds %s: what lies behind its first %d bytes will be lost", r.path, found.Name, room)
		return loss, failf(exitBad, hintForceShrink, "%s holds %s, which does not say how much of it is in use", r.path, found.Name), nil
	case spaceOf(found) > room:
		what := fmt.Sprintf("%s in %s takes %d bytes, and there would be only %d", found.Name, r.path, spaceOf(found), room)
		return what + ": it will be cut off", failf(exitBad, hintShrinkFirst, "%s", what), nil
	}
	return "", nil, nil
}

// largest returns what takes the most space, or does not say how much, or nil:
// nobody can tell which of several signatures is the one that counts.
func largest(all []fsprobe.Found) *fsprobe.Found {
	var largest *fsprobe.Found
	for i := range all {
		switch found := &all[i]; {
		case found.Size == 0:
			return found
		case largest == nil || spaceOf(found) > spaceOf(largest):
			largest = found
		}
	}
	return largest
}

// spaceOf returns how many bytes belong to what was found. NTFS does not count
// the copy of its boot sector, which is in the next sector.
func spaceOf(found *fsprobe.Found) int64 {
	if found.Name == "ntfs" {
		return found.Size + sizeUnit
	}
	return found.Size
}

// resizeDocument is what --json prints. Sizes are in bytes.
type resizeDocument struct {
	Container    string `json:"container"`
	OldSize      int64  `json:"old_size"`
	Size         int64  `json:"size"`
	PayloadBytes int64  `json:"payload_bytes"`
}

func (r *resizing) show(asJSON bool) error {
	if asJSON {
		return printJSON(resizeDocument{r.path, r.old, r.new, r.newPayload})
	}
	if r.new == r.old && r.newPayload == r.oldPayload {
		infof("%s has %s already", r.path, formatExactly(r.new))
		return nil
	}
	infof("%s has %s now, with a payload of %s", r.path, formatExactly(r.new), formatExactly(r.newPayload))
	if r.newPayload > r.oldPayload && !screen.quiet {
		hintf("a file system inside keeps its size until it is told to grow, as by resize2fs on MOUNTPOINT/volume after open --raw")
	}
	return nil
}
