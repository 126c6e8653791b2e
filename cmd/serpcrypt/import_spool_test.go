package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/iotest"

	"serpcrypt/cipher/serpent"
	"serpcrypt/volume"
)

func TestSpool(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, 511, 4096, 5000, spoolChunk - 1, spoolChunk, spoolChunk + 1, 2*spoolChunk + 4097} {
		t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
			data := make([]byte, size)
			random.Read(data)
			dir := t.TempDir()
			var told int64
			s, err := newSpool(context.Background(), iotest.HalfReader(bytes.NewReader(data)), dir, int64(size), serpent.Auto, func(done int64) { told = done })
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			if n, err := s.ReadAt(make([]byte, 1), (s.size+spoolSector-1)/spoolSector*spoolSector); n != 0 || err != io.EOF {
				t.Errorf("behind the end: %d bytes, %v", n, err)
			}
			if s.size != int64(size) || told != int64(size) {
				t.Errorf("size %d, told %d, want %d", s.size, told, size)
			}
			if got := names(t, dir); got != "" {
				t.Errorf("the folder has %q", got)
			}
			onDisk, err := io.ReadAll(io.NewSectionReader(s.file, 0, 1<<40))
			if err != nil {
				t.Fatal(err)
			}
			if size > 16 && (len(onDisk) < size || bytes.Contains(onDisk, data[:16])) {
				t.Error("the file has the data in clear, or not all of it")
			}
			for off := int64(0); off < s.size; off += spoolChunk {
				p := make([]byte, spoolChunk+1)
				n, err := s.ReadAt(p, off)
				want := data[off:min(len(data), int(off)+len(p))]
				if !bytes.Equal(p[:n], want) || (err != nil) != (n < len(p)) {
					t.Errorf("read %d bytes at %d, %v: not the data", n, off, err)
				}
			}
		})
	}
}

// Each spool has a key of its own.
func TestSpoolKeys(t *testing.T) {
	var onDisk [2][]byte
	for i := range onDisk {
		s, err := newSpool(context.Background(), bytes.NewReader(make([]byte, spoolSector)), t.TempDir(), spoolSector, serpent.Auto, func(int64) {})
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		if onDisk[i], err = io.ReadAll(io.NewSectionReader(s.file, 0, spoolSector)); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Equal(onDisk[0], onDisk[1]) {
		t.Error("two spools of the same data are the same")
	}
}

func TestSpoolTooLong(t *testing.T) {
	for _, limit := range []int64{0, 10, spoolChunk, spoolChunk + 10} {
		dir := t.TempDir()
		endless := rand.NewChaCha8([32]byte{2})
		_, err := newSpool(context.Background(), endless, dir, limit, serpent.Auto, func(int64) {})
		if !errors.Is(err, volume.ErrTooLong) {
			t.Errorf("limit %d: error %v, want %v", limit, err, volume.ErrTooLong)
		}
		if got := names(t, dir); got != "" {
			t.Errorf("the folder has %q", got)
		}
	}
}

func TestSpoolInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&signalError{syscall.SIGINT})
	_, err := newSpool(ctx, rand.NewChaCha8([32]byte{3}), t.TempDir(), 1<<40, serpent.Auto, func(int64) {})
	if code, _ := explain(err); code != 130 {
		t.Errorf("error %v, code %d, want 130", err, code)
	}
}
