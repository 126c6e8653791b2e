package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"serpcrypt/cipher/serpent"
)

// nullCipher copies: what is left is the cost of all else.
type nullCipher struct{}

func (nullCipher) Encrypt(dst, src []byte, _ uint64) { copy(dst, src) }
func (nullCipher) Decrypt(dst, src []byte, _ uint64) { copy(dst, src) }
func (nullCipher) Wipe()                             {}

// BenchmarkVolume reads and writes a file, in memory where there is such a
// file system, with each kernel and with none.
func BenchmarkVolume(b *testing.B) {
	const size = 64 << 20
	folder := b.TempDir()
	if memory, err := os.MkdirTemp("/dev/shm", "serpcrypt-bench"); err == nil {
		folder = memory
		b.Cleanup(func() { os.RemoveAll(memory) })
	}
	path := filepath.Join(folder, "container")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		b.Fatal(err)
	}
	f, err := OpenFile(path, false)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	l := layout{extents: []extent{{size: size, spec: "serpent-xts-plain64", sectorSize: 512}}}
	for _, kernel := range append([]serpent.Kernel{serpent.Auto}, serpent.Kernels()...) {
		v := l.open(b, f, Options{Kernel: kernel})
		name := kernel.String()
		if kernel == serpent.Auto {
			name = "null"
			v.segments[0].cipher = nullCipher{}
		}
		for _, n := range []int{4 << 10, 128 << 10, 1 << 20} {
			for op, do := range map[string]func([]byte, int64) (int, error){"read": v.ReadAt, "write": v.WriteAt} {
				b.Run(fmt.Sprintf("%s/%s/%dKiB", name, op, n>>10), func(b *testing.B) {
					p := make([]byte, n)
					b.SetBytes(int64(n))
					b.ReportAllocs()
					for off := int64(0); b.Loop(); off = (off + int64(n)) % size {
						if _, err := do(p, off); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
