package serpent

import (
	"fmt"
	"testing"
)

// BenchmarkOperations works on one sector per call, in place.
func BenchmarkOperations(b *testing.B) {
	for _, o := range operations {
		for _, size := range []int{16, 64, 256, 1024, 8192} {
			for _, k := range Kernels() {
				b.Run(fmt.Sprintf("op=%s/bytes=%d/kernel=%v", o.name, size, k), func(b *testing.B) {
					c, src := newTestCipher(b, k), randomText(size)
					ivs := randomIVs(o.ivBytes(1, size))
					b.SetBytes(int64(size))
					for b.Loop() {
						o.run(c, src, src, ivs)
					}
				})
			}
		}
	}
}

// BenchmarkSectors works on a run of sectors per call, in place.
func BenchmarkSectors(b *testing.B) {
	const run = 64 << 10
	for _, o := range operations {
		if o.ivs != ivPerSector {
			continue
		}
		for _, size := range []int{512, 4096} {
			for _, k := range Kernels() {
				b.Run(fmt.Sprintf("op=%s/sector=%d/kernel=%v", o.name, size, k), func(b *testing.B) {
					c, src := newTestCipher(b, k), randomText(run)
					ivs := randomIVs(o.ivBytes(run/size, size))
					b.SetBytes(run)
					for b.Loop() {
						o.run(c, src, src, ivs)
					}
				})
			}
		}
	}
}

func BenchmarkInit(b *testing.B) {
	for _, k := range Kernels() {
		b.Run(fmt.Sprintf("kernel=%v", k), func(b *testing.B) {
			var c Cipher
			for b.Loop() {
				if err := c.Init(testKey, k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSelfTest(b *testing.B) {
	for _, k := range Kernels() {
		b.Run(fmt.Sprintf("kernel=%v", k), func(b *testing.B) {
			for b.Loop() {
				if err := SelfTest(k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
