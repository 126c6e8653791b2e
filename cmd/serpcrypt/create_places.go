package main

import (
	"context"
	"errors"

	"serpcrypt/volume"
)

// places are where the parts of a new container go. The header has one of its
// own if it is detached.
type places struct {
	data   *place
	header *place // nil if it is attached
}

// findPlaces finds both.
func (want *creation) findPlaces(ctx context.Context) (*places, error) {
	if err := want.checkTwoPlaces(); err != nil {
		return nil, err
	}
	data, err := findPlace(ctx, &placeRequest{
		path:      want.path,
		size:      want.size,
		sizeFlag:  "--size",
		sparse:    want.sparse,
		force:     want.force,
		checkSize: want.checkSize,
	})
	if err != nil || want.header == "" {
		return &places{data: data}, err
	}
	space, err := want.headerSpace()
	var header *place
	if err == nil {
		header, err = findPlace(ctx, &placeRequest{
			path:      want.header,
			size:      space,
			force:     want.force,
			checkSize: want.checkHeaderSize,
		})
	}
	if err != nil {
		data.close()
		return nil, err
	}
	return &places{data, header}, nil
}

// checkTwoPlaces keeps the header from replacing the payload. Paths that lead
// nowhere are for findPlace to report.
func (want *creation) checkTwoPlaces() error {
	if want.header == "" {
		return nil
	}
	data, err := resolvePath(want.path)
	if err != nil {
		return nil
	}
	if header, err := resolvePath(want.header); err == nil && header == data {
		return errSameFile(want.header, want.path)
	}
	return nil
}

func (p *places) stores() volume.Stores {
	if p.header == nil {
		return volume.Attached(p.data.store)
	}
	return volume.Stores{Header: p.header.store, Data: p.data.store}
}

// publish gives the finished parts their names: both of them, or none. The
// payload alone looks like nothing, should the header not follow.
func (p *places) publish() error {
	err := p.data.publish()
	if err != nil || p.header == nil {
		return err
	}
	if err = p.header.publish(); err != nil {
		err = errors.Join(err, p.data.unpublish())
	}
	return err
}

func (p *places) close() {
	p.data.close()
	if p.header != nil {
		p.header.close()
	}
}
