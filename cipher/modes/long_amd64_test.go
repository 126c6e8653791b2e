//go:build !purego

package modes

import (
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"serpcrypt/cipher/serpent"
)

// TestLongRun has each kernel encrypt and decrypt 64 MiB, in calls of all
// kinds of lengths, and compares with the portable code by digest. The numbers
// of the sectors outgrow 32 bits on the way. SERPCRYPT_LONG=1 makes it 1 GiB.
func TestLongRun(t *testing.T) {
	size := 64 << 20
	switch {
	case os.Getenv("SERPCRYPT_LONG") == "1":
		size = 1 << 30
	case raceEnabled:
		size = 1 << 20
	}
	for _, c := range []struct {
		spec       string
		sectorSize int
	}{
		{"serpent-xts-plain64", 512},
		{"serpent-cbc-essiv:sha256", 4096},
	} {
		kernels := serpent.Kernels()
		digests := make([]longDigests, len(kernels))
		var working sync.WaitGroup
		for i, kernel := range kernels {
			s := newSectors(t, c.spec, longestKey(t, c.spec), c.sectorSize, kernel)
			working.Go(func() { digests[i] = runLong(s, size) })
		}
		working.Wait()
		for i, kernel := range kernels {
			t.Logf("%s, %d bytes by %v: SHA-256 %x encrypted, %x decrypted", c.spec, size, kernel, digests[i].encrypted, digests[i].decrypted)
			if digests[i] != digests[0] {
				t.Errorf("%s: %v differs from %v", c.spec, kernel, kernels[0])
			}
		}
	}
}

type longDigests struct{ encrypted, decrypted [sha256.Size]byte }

// runLong encrypts size bytes of noise, and decrypts others.
func runLong(s *Sectors, size int) longDigests {
	const chunk = 1 << 20
	noise := rand.NewChaCha8([32]byte{13})
	data := make([]byte, chunk)
	digest := func(do func(dst, src []byte, first uint64)) [sha256.Size]byte {
		h := sha256.New()
		first := uint64(1<<32 - 999)
		for i := range size / chunk {
			noise.Read(data)
			// Lengths from nothing to all, in another order than that of the batches.
			cut := 5 * i * s.sectorSize % (chunk + s.sectorSize)
			do(data[:cut], data[:cut], first)
			do(data[cut:], data[cut:], first+uint64(cut/unitSize))
			first += chunk / unitSize
			h.Write(data)
		}
		return [sha256.Size]byte(h.Sum(nil))
	}
	return longDigests{digest(s.Encrypt), digest(s.Decrypt)}
}
