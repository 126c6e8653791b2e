package sha1

import (
	stdsha1 "crypto/sha1"
	"fmt"
	"hash"
	"testing"
)

func BenchmarkSum(b *testing.B) {
	for _, n := range []int{16, 64, 256, 1024, 8192} {
		p := make([]byte, n)
		for _, impl := range []struct {
			name string
			sum  func([]byte) [Size]byte
		}{{"serpcrypt", Sum}, {"stdlib", stdsha1.Sum}} {
			b.Run(fmt.Sprintf("len=%d/%s", n, impl.name), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					impl.sum(p)
				}
			})
		}
	}
}

// Each message of one block is chosen by the last digest, or is it, so no call
// can start before the last has ended.
func BenchmarkEachWaiting(b *testing.B) {
	for _, impl := range []struct {
		name string
		sum  func([]byte) [Size]byte
		new  func() hash.Hash
	}{{"serpcrypt", Sum, New}, {"stdlib", stdsha1.Sum, stdsha1.New}} {
		b.Run("Sum/"+impl.name, func(b *testing.B) {
			var messages [2][BlockSize]byte
			b.SetBytes(BlockSize)
			last := byte(0)
			for b.Loop() {
				sum := impl.sum(messages[last&1][:])
				last = sum[0]
			}
		})
		b.Run("Write/"+impl.name, func(b *testing.B) {
			message, h := make([]byte, BlockSize), impl.new()
			b.SetBytes(BlockSize)
			for b.Loop() {
				h.Reset()
				h.Write(message)
				h.Sum(message[:0])
			}
		})
	}
}
