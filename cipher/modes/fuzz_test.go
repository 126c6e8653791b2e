package modes

import (
	"bytes"
	"testing"

	"serpcrypt/cipher/serpent"
)

// FuzzKernels compares all kernels with the portable code: any specification,
// key, sector size, number and first sector, and any data.
func FuzzKernels(f *testing.F) {
	specs := allSpecs()
	for i := range specs {
		f.Add(uint8(i), randomBytes(uint64(i), 48), uint8(i), uint8(23*i), uint64(1)<<(7*i%64)-3, randomBytes(9, 600))
	}
	f.Fuzz(func(t *testing.T, spec uint8, keyBytes []byte, sizes, sectors uint8, first uint64, data []byte) {
		name := specs[int(spec)%len(specs)]
		sectorSize := minSectorSize << (sizes % 4)
		keySizes := keySizesOf(t, name)
		key := make([]byte, keySizes[int(sizes/4)%len(keySizes)])
		copy(key, keyBytes)
		// Runs longer than a batch, without inputs as long.
		n := int(sectors)*minSectorSize/sectorSize + 1
		src := make([]byte, n*sectorSize)
		for i := range src {
			src[i] = byte(i / 512)
			if len(data) > 0 {
				src[i] += data[i%len(data)]
			}
		}
		portable := newSectors(t, name, key, sectorSize, serpent.Generic)
		encrypted, decrypted := make([]byte, len(src)), make([]byte, len(src))
		portable.Encrypt(encrypted, src, first)
		portable.Decrypt(decrypted, src, first)
		got := make([]byte, len(src))
		for _, kernel := range kernelsOf(name) {
			s := newSectors(t, name, key, sectorSize, kernel)
			for _, c := range []struct {
				op        string
				do        func(dst, src []byte, first uint64)
				src, want []byte
			}{
				{"enc", s.Encrypt, src, encrypted},
				{"dec", s.Decrypt, src, decrypted},
				{"dec of enc", s.Decrypt, encrypted, src},
			} {
				if c.do(got, c.src, first); !bytes.Equal(got, c.want) {
					t.Errorf("%s,%v,sectors=%dx%d,first=%d,%s: differs", name, kernel, n, sectorSize, first, c.op)
				}
				copy(got, c.src)
				if c.do(got, got, first); !bytes.Equal(got, c.want) {
					t.Errorf("%s,%v,sectors=%dx%d,first=%d,%s in place: differs", name, kernel, n, sectorSize, first, c.op)
				}
			}
		}
	})
}
