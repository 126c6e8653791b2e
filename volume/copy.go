package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Fill writes zeros over the whole volume, on all cores, so that the store
// holds ciphertext everywhere. It does not sync.
func (v *Volume) Fill(ctx context.Context, progress Progress) error {
	zeros := make([]byte, chunkSize)
	return eachChunk(ctx, v.size, progress, func() func(int64, int) error {
		return func(off int64, n int) error {
			_, err := v.WriteAt(zeros[:n], off)
			return err
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

// CopyIn writes what r gives to the volume's beginning, on all cores, and
// returns how many bytes that were. It does not sync. size is how many there
// must be, no more and no less, or -1 for as many as there are.
//
// If size is more than the volume has, the error is ErrTooLong and nothing is
// written. With size -1 that is found out only when the volume is full.
func (v *Volume) CopyIn(ctx context.Context, r io.Reader, size int64, progress Progress) (int64, error) {
	if size > v.size {
		return 0, fmt.Errorf("%w: %d bytes, the volume has %d", ErrTooLong, size, v.size)
	}
	meter := newProgressMeter(progress, size)
	free := newChunks()
	full := make(chan *chunk)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(full)
		return v.readChunks(ctx, r, size, free, full)
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for c := range full {
				if _, err := v.WriteAt(c.data, c.off); err != nil {
					return err
				}
				meter.add(len(c.data))
				free <- c
			}
			return nil
		})
	}
	err := group.Wait()
	return meter.done, err
}

// readChunks passes r on until its end.
func (v *Volume) readChunks(ctx context.Context, r io.Reader, size int64, free, full chan *chunk) error {
	limit := v.size
	if size >= 0 {
		limit = size
	}
	for off := int64(0); off < limit; {
		c, err := receive(ctx, free)
		if err != nil {
			return err
		}
		n, err := io.ReadFull(r, c.buffer[:min(chunkSize, limit-off)])
		atEnd := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !atEnd {
			return fmt.Errorf("volume: reading what is to be copied in: %w", err)
		}
		if atEnd && size >= 0 {
			return fmt.Errorf("volume: what is to be copied in ended after %d of %d bytes: %w", off+int64(n), size, io.ErrUnexpectedEOF)
		}
		c.data, c.off = c.buffer[:n], off
		if err := send(ctx, full, c); err != nil {
			return err
		}
		off += int64(n)
		if atEnd {
			return nil
		}
	}
	// Nothing may be left, or what is in the volume is not all of it.
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0 && size >= 0:
		return fmt.Errorf("%w: there are more than the %d bytes expected", ErrTooLong, size)
	case n > 0:
		return fmt.Errorf("%w: there are more than its %d bytes", ErrTooLong, v.size)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("volume: reading what is to be copied in: %w", err)
	}
	return nil
}

// CopyOut writes the whole volume to w, decrypted on all cores.
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
			if err, cancelled := receive(ctx, c.err); cancelled != nil {
				return cancelled
			} else if err != nil {
				return err
			}
			if _, err := w.Write(c.data); err != nil {
				return fmt.Errorf("volume: writing what is copied out: %w", err)
			}
			meter.add(len(c.data))
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
