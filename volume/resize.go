package volume

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
)

// Resizable is a Store whose length can be changed.
type Resizable interface {
	Store
	// Reserve makes sure of the space for a length of size bytes, and leaves the
	// length as it is.
	Reserve(size int64) error
	// Truncate makes the length size bytes, in one step. What is added takes no
	// space and reads as zeros.
	Truncate(size int64) error
}

// Resize gives the store of a container's payload a length of size bytes. What is
// cut off is lost; what is added is filled with random bytes, unless it is to be
// sparse. If the header states how long the payload is, as one of LUKS2 may, it
// states then that it takes all of that length. header and data are the same
// unless the header is detached.
//
// The header never states more than there is, so that the container is whole at
// every moment: it is told of less before the store gets shorter, and of more when
// that has become longer. After an error the store may be longer than the header
// states. Resize can go on from there.
//
// Errors: a *SizeError, a *FormatError, ErrBusy, that of ctx, or those of the stores.
func Resize(ctx context.Context, header Store, data Resizable, size int64, sparse bool, progress Progress) error {
	c, err := openContainer(ctx, Stores{header, data})
	if err != nil {
		return err
	}
	old, err := data.Size()
	if err != nil {
		return err
	}
	h := c.header()
	payload := h.PayloadIn(size)
	if payload <= 0 {
		return &SizeError{size, h.PayloadOffset + int64(h.SectorSize)}
	}
	state := func(ctx context.Context) error {
		return edit(ctx, header, func(c container) (func() error, error) { return c.statePayloadSize(payload) })
	}
	if h.PayloadSize > payload {
		if err := state(ctx); err != nil {
			return err
		}
	}
	if size < old {
		err = shrink(data, size)
	} else if size > old {
		err = grow(ctx, data, size, sparse, progress)
	}
	if err == nil && h.PayloadSize != 0 && h.PayloadSize < payload {
		err = state(context.WithoutCancel(ctx)) // all of the work is done
	}
	return err
}

// grow makes a container that reaches to the end of s longer, to size bytes.
// Unless it is to be sparse, the space is taken first, and then filled with
// random bytes, which nobody can tell from ciphertext.
//
// The bytes are appended in order, so that s is a whole container at every
// moment: what it held is not touched, and nothing in it is unfilled. If
// anything fails, or ctx is done, s gets its old length back. If the power
// fails, s keeps a length between the two, and grow can go on from there.
func grow(ctx context.Context, s Resizable, size int64, sparse bool, progress Progress) error {
	old, err := s.Size()
	if err != nil {
		return err
	}
	if size < old {
		return fmt.Errorf("volume: %d bytes are no growth of %d", size, old)
	}
	if sparse {
		err = s.Truncate(size)
	} else if err = s.Reserve(size); err == nil {
		err = appendRandom(ctx, s, old, size, progress)
	}
	if err == nil {
		err = s.Sync()
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, undoGrowth(s, old))
}

// undoGrowth gives back the length of before and space that was only reserved.
func undoGrowth(s Resizable, old int64) error {
	err := s.Truncate(old)
	if err == nil {
		err = s.Sync()
	}
	if err != nil {
		return fmt.Errorf("volume: back to %d bytes: %w", old, err)
	}
	return nil
}

// appendRandom writes random bytes from old, the end of s, to size.
func appendRandom(ctx context.Context, s Store, old, size int64, progress Progress) error {
	var seed [32]byte
	cryptorand.Read(seed[:])
	stream := rand.NewChaCha8(seed)
	chunk := make([]byte, chunkSize)
	meter := newProgressMeter(progress, size-old)
	for at := old; at < size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// The next multiple of chunkSize, as disks like it.
		p := chunk[:min(chunkSize-at%chunkSize, size-at)]
		stream.Read(p)
		if err := writeFull(s, p, at); err != nil {
			return fmt.Errorf("volume: write at byte %d: %w", at, err)
		}
		at += int64(len(p))
		meter.add(int64(len(p)))
	}
	return nil
}

// shrink cuts a container that reaches to the end of s off at size bytes, in
// one step. What lies beyond is lost.
func shrink(s Resizable, size int64) error {
	old, err := s.Size()
	if err != nil {
		return err
	}
	if size > old {
		return fmt.Errorf("volume: %d bytes are no part of %d", size, old)
	}
	if err := s.Truncate(size); err != nil {
		return err
	}
	return s.Sync()
}
