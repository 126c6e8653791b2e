package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/newfile"
	"serpcrypt/internal/secret"
	"serpcrypt/volume"
)

const (
	spoolSector  = 4096    // bytes, the unit of encryption
	spoolChunk   = 1 << 20 // bytes, a whole number of sectors
	spoolKeySize = 64      // bytes
)

// spool holds data of unknown length in a file without a name until its end
// has been seen, encrypted with a key that exists in memory only.
type spool struct {
	file   *newfile.File
	cipher *modes.Sectors
	size   int64 // bytes of data
}

// newSpool reads all of r into a file in folder. More than limit bytes are
// volume.ErrTooLong.
func newSpool(ctx context.Context, r io.Reader, folder string, limit int64, k serpent.Kernel, update func(done int64)) (*spool, error) {
	key, err := secret.New(spoolKeySize)
	if err != nil {
		return nil, err
	}
	defer key.Close()
	rand.Read(key.Bytes())
	cipher, err := modes.New("serpent-xts-plain64", key.Bytes(), spoolSector, k)
	if err != nil {
		return nil, err
	}
	file, err := newfile.CreateNameless(folder)
	if err != nil {
		cipher.Wipe()
		return nil, err
	}
	s := &spool{file: file, cipher: cipher}
	if err := s.fill(ctx, r, limit, update); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *spool) fill(ctx context.Context, r io.Reader, limit int64, update func(done int64)) error {
	buffer := make([]byte, spoolChunk)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.ReadFull(r, buffer)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return err
		}
		if int64(n) > limit-s.size {
			return volume.ErrTooLong
		}
		padded := buffer[:(n+spoolSector-1)/spoolSector*spoolSector]
		clear(padded[n:])
		s.cipher.Encrypt(padded, padded, sectorNumber(s.size))
		if _, err := s.file.WriteAt(padded, s.size); err != nil {
			return fmt.Errorf("the data wait for their end in an unnamed file beside the container: %w", err)
		}
		s.size += int64(n)
		update(s.size)
		if end {
			return nil
		}
	}
}

// ReadAt implements io.ReaderAt, for an off that is a multiple of spoolSector.
func (s *spool) ReadAt(p []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, io.EOF
	}
	var atEnd error
	if int64(len(p)) > s.size-off {
		p, atEnd = p[:s.size-off], io.EOF
	}
	whole := len(p) / spoolSector * spoolSector
	if err := s.readSectors(p[:whole], off); err != nil {
		return 0, err
	}
	if whole < len(p) {
		last := make([]byte, spoolSector)
		if err := s.readSectors(last, off+int64(whole)); err != nil {
			return whole, err
		}
		copy(p[whole:], last)
	}
	return len(p), atEnd
}

func (s *spool) readSectors(p []byte, off int64) error {
	if _, err := s.file.ReadAt(p, off); err != nil {
		return err
	}
	s.cipher.Decrypt(p, p, sectorNumber(off))
	return nil
}

// close forgets the key and the file.
func (s *spool) close() {
	s.cipher.Wipe()
	s.file.Discard()
}

// sectorNumber counts in sectorSize, as the cipher's first sector does, and not
// in spoolSector.
func sectorNumber(offset int64) uint64 { return uint64(offset / sectorSize) }
