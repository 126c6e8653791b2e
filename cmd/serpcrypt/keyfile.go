package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"serpcrypt/internal/secret"
)

// readKeyFile reads size bytes from offset on, or all that follows offset if
// size is 0.
func readKeyFile(ctx context.Context, path string, offset, size int64) (*secret.Buffer, error) {
	file := os.Stdin
	if path != stdio {
		f, err := openWithoutWaiting(path)
		if err != nil {
			return nil, fmt.Errorf("key file: %w", err)
		}
		defer f.Close()
		file = f
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, failf(exitBad, "", "key file %s is a folder", path)
	}
	r := &interruptible{ctx: ctx, file: file}
	if err := skipBytes(r, offset); err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	b, err := readSecretly(r, size)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return b, nil
}

// skipBytes reads over n bytes; they may be part of a key.
func skipBytes(r io.Reader, n int64) error {
	waste, err := secret.New(4096)
	if err != nil {
		return err
	}
	defer waste.Close()
	all := n
	for n > 0 {
		got, err := r.Read(waste.Bytes()[:min(n, int64(waste.Len()))])
		n -= int64(got)
		if n > 0 && errors.Is(err, io.EOF) {
			return failf(exitBad, "", "it ends before the %d bytes that are to be skipped", all)
		}
		if n > 0 && err != nil {
			return err
		}
	}
	return nil
}

// readSecretly reads size bytes, or to the end if size is 0, into locked
// memory that grows without leaving a copy behind.
func readSecretly(r io.Reader, size int64) (*secret.Buffer, error) {
	limit := size
	if limit == 0 {
		limit = maxKeyFile + 1
	}
	b, err := secret.New(int(min(limit, 64<<10)))
	if err != nil {
		return nil, err
	}
	n := 0
	for int64(n) < limit {
		if n == b.Len() {
			larger, err := secret.New(int(min(limit, 2*int64(n))))
			if err != nil {
				b.Close()
				return nil, err
			}
			copy(larger.Bytes(), b.Bytes())
			b.Close()
			b = larger
		}
		got, err := r.Read(b.Bytes()[n:])
		n += got
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Close()
			return nil, err
		}
	}
	b.Truncate(n)
	switch {
	case size > 0 && int64(n) < size:
		err = failf(exitBad, "", "it has only %d bytes of the %d that are to be read", n, size)
	case n > maxKeyFile:
		err = usagef("it is larger than %d bytes", maxKeyFile)
	case n == 0:
		err = failf(exitUsage, hintNoPassphrase, "it is empty")
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}
