package modes

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/guarded"
)

// TestRunLengths runs few sectors, any number of them, and about as many as are
// in a batch, to another place, in place and misaligned, and looks at the bytes
// around.
func TestRunLengths(t *testing.T) {
	const maxSectors = maxBatchSectors + 10
	const first = 1<<64 - 3
	var lengths []int
	for n := range maxSectors + 1 {
		if n%13 == 0 || !raceEnabled && (n < 70 || n > maxBatchSectors-10) {
			lengths = append(lengths, n)
		}
	}
	for _, spec := range specsPerMode {
		key := longestKey(t, spec)
		plaintext := randomBytes(4, maxSectors*512)
		ciphertext := bytes.Clone(plaintext)
		newReference(t, spec, key).encrypt(ciphertext, 512, first)
		for _, kernel := range kernelsOf(spec) {
			s := newSectors(t, spec, key, 512, kernel)
			for _, op := range []struct {
				name     string
				do       func(dst, src []byte, first uint64)
				src, dst []byte
			}{
				{"enc", s.Encrypt, plaintext, ciphertext},
				{"dec", s.Decrypt, ciphertext, plaintext},
			} {
				src := make([]byte, len(plaintext)+64)
				dst := make([]byte, len(plaintext)+64)
				for _, n := range lengths {
					size := n * 512
					what := fmt.Sprintf("%s,%v,%s,sectors=%d", spec, kernel, op.name, n)
					before := bytes.Repeat([]byte{0xaa}, len(dst))
					at := 1 + n%16
					switch n % 3 {
					case 0:
						copy(dst, before)
						op.do(dst[:size], op.src[:size], first)
						checkEqual(t, what, dst[:size], op.dst[:size])
						checkEqual(t, what+" (behind)", dst[size:], before[size:])
					case 1:
						copy(dst, before)
						copy(dst[at:], op.src[:size])
						op.do(dst[at:at+size], dst[at:at+size], first)
						checkEqual(t, what+" in place", dst[at:at+size], op.dst[:size])
						checkEqual(t, what+" (before)", dst[:at], before[:at])
						checkEqual(t, what+" (behind)", dst[at+size:], before[at+size:])
					case 2:
						// dst may be longer than src.
						copy(dst, before)
						copy(src[at:], op.src[:size])
						op.do(dst[17-at:], src[at:at+size], first)
						checkEqual(t, what+" misaligned", dst[17-at:17-at+size], op.dst[:size])
						checkEqual(t, what+" (before)", dst[:17-at], before[:17-at])
						checkEqual(t, what+" (behind)", dst[17-at+size:], before[17-at+size:])
						checkEqual(t, what+" (source)", src[at:at+size], op.src[:size])
					}
				}
			}
		}
	}
}

// atEdge returns n bytes that have a page without access right behind them (atEnd)
// or right before.
func atEdge(t *testing.T, n int, atEnd bool) []byte {
	pages := guarded.Memory(t, n)
	if atEnd {
		return pages[len(pages)-n:]
	}
	return pages[:n:n]
}

func TestGuardPages(t *testing.T) {
	for _, atEnd := range []bool{false, true} {
		for _, sectors := range []int{1, 2, 7, fewSectors, fewSectors + 1, maxBatchSectors, maxBatchSectors + 1} {
			n := sectors * 512
			src, dst := atEdge(t, n, atEnd), atEdge(t, n, atEnd)
			for _, spec := range specsPerMode {
				key := longestKey(t, spec)
				plaintext := randomBytes(5, n)
				ciphertext := bytes.Clone(plaintext)
				newReference(t, spec, key).encrypt(ciphertext, 512, 9)
				for _, kernel := range kernelsOf(spec) {
					s := newSectors(t, spec, key, 512, kernel)
					what := fmt.Sprintf("%s,%v,sectors=%d,end=%v", spec, kernel, sectors, atEnd)
					copy(src, plaintext)
					s.Encrypt(dst, src, 9)
					checkEqual(t, what+",enc", dst, ciphertext)
					s.Decrypt(src, dst, 9)
					checkEqual(t, what+",dec", src, plaintext)
					s.Encrypt(src, src, 9)
					checkEqual(t, what+",in place", src, ciphertext)
				}
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	for _, spec := range specsPerMode {
		for _, kernel := range kernelsOf(spec) {
			for _, sectorSize := range []int{512, 4096} {
				s := newSectors(t, spec, longestKey(t, spec), sectorSize, kernel)
				data := make([]byte, 128<<10)
				for _, n := range []int{sectorSize, len(data)} {
					if got := testing.AllocsPerRun(5, func() {
						s.Encrypt(data[:n], data[:n], 1)
						s.Decrypt(data[:n], data[:n], 1)
					}); got != 0 {
						t.Errorf("%s,%v,sector=%d,len=%d: %v allocations", spec, kernel, sectorSize, n, got)
					}
				}
			}
		}
	}
}

func TestConcurrent(t *testing.T) {
	const workers, rounds, sectors = 8, 4, 20
	for _, spec := range specsPerMode {
		key := longestKey(t, spec)
		plaintext := randomBytes(6, sectors*512)
		ref := newReference(t, spec, key)
		s := newSectors(t, spec, key, 512, serpent.Auto)
		var want [workers][]byte
		for i := range want {
			want[i] = bytes.Clone(plaintext)
			ref.encrypt(want[i], 512, uint64(1000*i))
		}
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				data := bytes.Clone(plaintext)
				for range rounds {
					s.Encrypt(data, data, uint64(1000*i))
					checkEqual(t, spec+" enc", data, want[i])
					s.Decrypt(data, data, uint64(1000*i))
					checkEqual(t, spec+" dec", data, plaintext)
				}
			})
		}
		wg.Wait()
	}
}
