package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"

	"serpcrypt/internal/fsprobe"
)

// Fill writes zeros over the whole volume, on all cores, so that the store
// holds ciphertext everywhere. It does not sync.
func (v *Volume) Fill(ctx context.Context, progress Progress) error {
	zeros := make([]byte, chunkSize)
	return eachChunk(ctx, oneRange(0, v.size), newProgressMeter(progress, v.size), func() func(int64, int) error {
		return func(off int64, n int) error {
			_, err := v.WriteAt(zeros[:n], off)
			return err
		}
	})
}

// CopyIn writes the size bytes of source over the volume's beginning, on all
// cores, and syncs. Where source is a DataFinder its holes are not read; they
// become zeros in the volume like any others.
//
// While the work is under way the volume begins with fsprobe.UnfinishedMark, and
// zeros instead of whatever signature was there. The source's beginning takes
// their place when all else is on the disk, its first sector last of all. So what
// is interrupted, even by a power failure, is found out by whoever looks inside.
// Only up to that one sector is written at once.
//
// If size is more than the volume has, the error is ErrTooLong and nothing is
// written. If the volume was written to, it is ErrUnfinished, among others.
func (v *Volume) CopyIn(ctx context.Context, source io.ReaderAt, size int64, progress Progress) error {
	if size > v.size {
		return fmt.Errorf("%w: %d bytes, the volume has %d", ErrTooLong, size, v.size)
	}
	beginning := make([]byte, min(size, chunkSize))
	if err := readSource(source, beginning, 0); err != nil {
		return err
	}
	if err := v.copyIn(ctx, source, beginning, newProgressMeter(progress, size)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	return nil
}

func (v *Volume) copyIn(ctx context.Context, source io.ReaderAt, beginning []byte, meter *progressMeter) error {
	mark := fsprobe.UnfinishedMark()
	first := min(len(beginning), len(mark))
	if len(beginning) > len(mark) {
		// The mark goes first, as what has lost only a part must not be trusted
		// either.
		if err := v.writeSynced(mark, 0); err != nil {
			return err
		}
		if err := v.writeSynced(make([]byte, len(beginning)-first), int64(first)); err != nil {
			return err
		}
	}
	if err := v.copyRest(ctx, source, meter); err != nil {
		return err
	}
	if err := v.Sync(); err != nil {
		return err
	}
	if err := v.writeSynced(beginning[first:], int64(first)); err != nil {
		return err
	}
	if err := v.writeSynced(beginning[:first], 0); err != nil {
		return err
	}
	meter.add(int64(len(beginning)))
	return nil
}

func (v *Volume) writeSynced(p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	if _, err := v.WriteAt(p, off); err != nil {
		return err
	}
	return v.Sync()
}

// copyRest copies what is behind the first chunk, and makes sure that the source
// ends where it should.
func (v *Volume) copyRest(ctx context.Context, source io.ReaderAt, meter *progressMeter) error {
	zeros := make([]byte, chunkSize)
	err := eachChunk(ctx, oneRange(chunkSize, meter.total), meter, func() func(int64, int) error {
		buffer := make([]byte, chunkSize)
		holes := holeFinder{source: source}
		return func(off int64, n int) error {
			p := buffer[:n]
			isHole, err := holes.isHole(off, n)
			if isHole {
				p = zeros[:n]
			} else if err == nil {
				err = readSource(source, p, off)
			}
			if err != nil {
				return err
			}
			_, err = v.WriteAt(p, off)
			return err
		}
	})
	if err != nil {
		return err
	}
	switch n, err := source.ReadAt(make([]byte, 1), meter.total); {
	case n > 0:
		return fmt.Errorf("%w: there are more than the %d bytes expected", ErrTooLong, meter.total)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("volume: reading what is to be copied in: %w", err)
	}
	return nil
}

func readSource(source io.ReaderAt, p []byte, off int64) error {
	if err := readFull(source, p, off); err != nil {
		return fmt.Errorf("volume: reading what is to be copied in, at byte %d: %w", off, err)
	}
	return nil
}

// CopyTo writes the whole volume to w, decrypted, on all cores and in any order.
// If it is to be sparse, nothing is written where the store has holes, whose
// plaintext would be noise, and where there are zeros: w reads as zeros there by
// itself.
func (v *Volume) CopyTo(ctx context.Context, w io.WriterAt, sparse bool, progress Progress) error {
	meter := newProgressMeter(progress, v.size)
	ranges, write := oneRange(0, v.size), writeFull
	if sparse {
		ranges, write = v.dataRanges(sparseUnit, meter), writeSparse
	}
	return eachChunk(ctx, ranges, meter, func() func(int64, int) error {
		buffer := make([]byte, chunkSize)
		return func(off int64, n int) error {
			p := buffer[:n]
			if _, err := v.ReadAt(p, off); err != nil {
				return err
			}
			if err := write(w, p, off); err != nil {
				return fmt.Errorf("volume: writing what is copied out: %w", err)
			}
			return nil
		}
	})
}

// chunk is a piece of the volume that is on its way.
type chunk struct {
	data []byte // a part of buffer
	off  int64
	err  chan error // tells when the chunk is ready

	buffer [chunkSize]byte
}

// newChunks returns free chunks, so many that reading, the cipher on every
// core and writing all have some to work on.
func newChunks() chan *chunk {
	n := 2*runtime.GOMAXPROCS(0) + 2
	free := make(chan *chunk, n)
	for range n {
		free <- &chunk{err: make(chan error, 1)}
	}
	return free
}

// CopyOut writes the whole volume to w in order, decrypted on all cores.
func (v *Volume) CopyOut(ctx context.Context, w io.Writer, progress Progress) error {
	meter := newProgressMeter(progress, v.size)
	free := newChunks()
	todo := make(chan *chunk)
	inOrder := make(chan *chunk, cap(free))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(todo)
		defer close(inOrder)
		for off := int64(0); off < v.size; off += chunkSize {
			c, err := receive(ctx, free)
			if err != nil {
				return err
			}
			c.data, c.off = c.buffer[:min(chunkSize, v.size-off)], off
			inOrder <- c // has room for all chunks
			if err := send(ctx, todo, c); err != nil {
				return err
			}
		}
		return nil
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for c := range todo {
				_, err := v.ReadAt(c.data, c.off)
				c.err <- err
			}
			return nil
		})
	}
	group.Go(func() error {
		for c := range inOrder {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err, cancelled := receive(ctx, c.err); cancelled != nil {
				return cancelled
			} else if err != nil {
				return err
			}
			if _, err := w.Write(c.data); err != nil {
				return fmt.Errorf("volume: writing what is copied out: %w", err)
			}
			meter.add(int64(len(c.data)))
			free <- c
		}
		return nil
	})
	return group.Wait()
}

func receive[T any](ctx context.Context, from <-chan T) (T, error) {
	select {
	case value := <-from:
		return value, nil
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func send[T any](ctx context.Context, to chan<- T, value T) error {
	select {
	case to <- value:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
