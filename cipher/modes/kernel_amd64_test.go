//go:build !purego

package modes

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"

	"serpcrypt/cipher/serpent"
)

// TestWhichKernelRuns proves that the kernel of a Sectors does the work, and no
// other code. In a Cipher each kernel has round keys of its own, and so has the
// portable code: what changes when some are spoilt was done by their reader.
func TestWhichKernelRuns(t *testing.T) {
	vectorKernels := serpent.Kernels()[1:]
	if len(vectorKernels) == 0 {
		t.Fatal("no vector kernel, and every amd64 CPU has SSE2")
	}
	for _, spec := range serpentSpecs {
		key := longestKey(t, spec)
		for _, run := range []struct{ sectors, sectorSize int }{
			{1, 512}, {2, 512}, {3, 512}, {5, 512}, {8, 512}, {9, 512}, {18, 512}, {96, 512}, {192, 512}, {193, 512}, {400, 512},
			{1, 4096}, {3, 4096}, {33, 4096},
		} {
			if raceEnabled && run.sectors > 9 {
				continue
			}
			portable := newSectors(t, spec, key, run.sectorSize, serpent.Generic)
			src := randomBytes(12, run.sectors*run.sectorSize)
			for _, kernel := range vectorKernels {
				s := newSectors(t, spec, key, run.sectorSize, kernel)
				for name, encrypt := range map[string]bool{"enc": true, "dec": false} {
					what := fmt.Sprintf("%s,%v,%s of %d sectors of %d bytes", spec, kernel, name, run.sectors, run.sectorSize)
					right := s.cryptNew(src, encrypt)
					for role, c := range s.ciphers() {
						own, shared := roundKeys(t, c, portable.ciphers()[role])
						flip(own)
						withoutKernel := s.cryptNew(src, encrypt)
						flip(own)
						flip(shared)
						withoutPortable := s.cryptNew(src, encrypt)
						flip(shared)

						// Lanes are blocks of data, or sectors. Of these the last may be too few.
						step, least := 16, 1
						if role != "data" || encrypt && s.mode == modeCBC {
							step, least = run.sectorSize, 3
						}
						for at := 0; at < len(src); at += step {
							block := func(b []byte) []byte { return b[at : at+16] }
							byKernel := !bytes.Equal(block(withoutKernel), block(right))
							byPortable := !bytes.Equal(block(withoutPortable), block(right))
							if byKernel == byPortable || byPortable && at+least*step <= len(src) {
								t.Errorf("%s: the cipher of %s worked on byte %d by its kernel: %v, by the portable code: %v", what, role, at, byKernel, byPortable)
								break
							}
						}
					}
				}
			}
		}
	}
}

// cryptNew returns what becomes of src.
func (s *Sectors) cryptNew(src []byte, encrypt bool) []byte {
	dst := make([]byte, len(src))
	s.crypt(dst, src, 5, encrypt)
	return dst
}

// ciphers returns those that are in use, by what for.
func (s *Sectors) ciphers() map[string]*serpent.Cipher {
	used := map[string]*serpent.Cipher{"data": &s.keys.data}
	if s.mode == modeXTS {
		used["tweaks"] = &s.keys.tweak
	}
	if s.iv == ivESSIV {
		used["IVs"] = &s.keys.essiv
	}
	return used
}

// roundKeys finds the bytes of c that belong to its kernel alone, and those of
// the portable code, which is all that a cipher of kernel Generic has.
func roundKeys(t testing.TB, c, portable *serpent.Cipher) (own, shared []*byte) {
	memory, known := cipherMemory(c), cipherMemory(portable)
	for i := range memory {
		switch {
		case memory[i] == 0:
		case known[i] == 0:
			own = append(own, &memory[i])
		case known[i] == memory[i]:
			shared = append(shared, &memory[i])
		}
	}
	const least = 33 * 16 / 2 // zeros do not count
	if len(own) < least || len(shared) < least {
		t.Fatalf("%v: %d bytes belong to the kernel, %d to the portable code", c.Kernel(), len(own), len(shared))
	}
	return own, shared
}

func cipherMemory(c *serpent.Cipher) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(c)), unsafe.Sizeof(*c))
}

func flip(bytes []*byte) {
	for _, b := range bytes {
		*b = ^*b
	}
}
