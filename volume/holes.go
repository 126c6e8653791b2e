package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/sys/unix"
)

// DataFinder is an io.ReaderAt that knows where it has holes: what was never
// written, or was given back, and reads as zeros.
type DataFinder interface {
	// NextData returns the first run of data that ends behind off, without what
	// is before off. to may be beyond the end. If there is nothing but holes, the
	// error is io.EOF.
	NextData(off int64) (from, to int64, err error)
}

// NextData implements DataFinder. Where the file system or device knows of no
// holes, all is data. It moves the file's position.
func (f *File) NextData(off int64) (from, to int64, err error) {
	from, err = f.file.Seek(off, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return 0, 0, io.EOF
	case errors.Is(err, unix.EINVAL):
		return off, math.MaxInt64, nil
	case err != nil:
		return 0, 0, fmt.Errorf("volume: find data: %w", err)
	}
	to, err = f.file.Seek(from, unix.SEEK_HOLE)
	if errors.Is(err, unix.ENXIO) {
		return 0, 0, io.EOF // it has become shorter
	}
	if err != nil {
		return 0, 0, fmt.Errorf("volume: find holes: %w", err)
	}
	return from, to, nil
}

// dataRanges are where the volume may hold data, in whole units but at its end.
// In between are holes of the store, of which the meter is told.
func (v *Volume) dataRanges(unit int64, meter *progressMeter) byteRanges {
	return func(yield func(byteRange, error) bool) {
		reached := int64(0)
		for i := range v.segments {
			s := &v.segments[i]
			for at := s.start; at < s.end(); {
				data, err := s.nextData(v.store, at)
				if err != nil {
					yield(byteRange{}, err)
					return
				}
				at = data.to
				from := max(reached, data.from/unit*unit)
				to := min(v.size, (data.to+unit-1)/unit*unit)
				if data.from == data.to || to <= reached {
					continue
				}
				meter.add(from - reached)
				reached = to
				if !yield(byteRange{from, to}, nil) {
					return
				}
			}
		}
		meter.add(v.size - reached)
	}
}

// nextData returns where in the volume the next data of the segment are, from
// pos on. Without any it is empty, at the segment's end.
func (s *segment) nextData(store Store, pos int64) (byteRange, error) {
	finder, can := store.(DataFinder)
	if !can {
		return byteRange{pos, s.end()}, nil
	}
	from, to, err := finder.NextData(s.inStore(pos))
	if errors.Is(err, io.EOF) || err == nil && from-s.offset >= s.size {
		return byteRange{s.end(), s.end()}, nil
	}
	if err != nil {
		return byteRange{}, err
	}
	return byteRange{s.start + from - s.offset, s.start + min(to-s.offset, s.size)}, nil
}

// holeFinder tells what of a source is holes, if the source knows, and one asks in
// order. It remembers the run of data that was found last.
type holeFinder struct {
	source io.ReaderAt
	data   byteRange
}

// isHole reports whether the n bytes at off are all in a hole.
func (h *holeFinder) isHole(off int64, n int) (bool, error) {
	finder, can := h.source.(DataFinder)
	if !can {
		return false, nil
	}
	if off >= h.data.to {
		from, to, err := finder.NextData(off)
		if errors.Is(err, io.EOF) {
			from, to, err = math.MaxInt64, math.MaxInt64, nil
		}
		if err != nil {
			return false, err
		}
		h.data = byteRange{from, to}
	}
	return off+int64(n) <= h.data.from, nil
}

// sparseUnit is the least that is left out of a sparse copy: a block of most file
// systems, in bytes.
const sparseUnit = 4096

var zeroUnit [sparseUnit]byte

// writeSparse writes p but for the units that are zero.
func writeSparse(w io.WriterAt, p []byte, off int64) error {
	isZero := func(at int) bool {
		unit := p[at:min(at+sparseUnit, len(p))]
		return bytes.Equal(unit, zeroUnit[:len(unit)])
	}
	for at := 0; at < len(p); {
		from := at
		for at < len(p) && !isZero(at) {
			at = min(at+sparseUnit, len(p))
		}
		if at > from {
			if err := writeFull(w, p[from:at], off+int64(from)); err != nil {
				return err
			}
			continue
		}
		at = min(at+sparseUnit, len(p))
	}
	return nil
}
