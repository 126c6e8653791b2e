package modes

import (
	"bytes"
	"math/big"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"serpcrypt/cipher/serpent"
)

const stackSize = 32 << 10

// deepStack makes room on the goroutine's stack, so that it does not move
// before stackBelow looks at it, and clears it.
//
//go:noinline
func deepStack() {
	var room [2 * stackSize]byte
	wipe(&room)
}

// wipe is a function of its own, lest the compiler finds the room unused.
//
//go:noinline
func wipe(room *[2 * stackSize]byte) { clear(room[:]) }

// stackBelow copies what earlier calls of the caller left on the stack.
//
//go:noinline
//go:nocheckptr
func stackBelow(dst *[stackSize]byte) {
	var here byte
	for i := range dst {
		dst[len(dst)-1-i] = *(*byte)(unsafe.Add(unsafe.Pointer(&here), -1-i))
	}
}

// secretsOf returns IVs or tweaks, 16 bytes each, that make one sector after
// the other, and that only who has the key may know.
func (r *reference) secretsOf(first, sectors uint64) []byte {
	var secrets []byte
	for n := first; n < first+sectors; n++ {
		iv := r.sectorIV(n)
		switch r.mode + "-" + r.iv {
		case "xts-plain64":
			r.tweak.Encrypt(iv, iv)
			secrets = append(secrets, iv...)
		case "cbc-essiv", "lrw-essiv":
			secrets = append(secrets, iv...)
		case "lrw-benbi":
			number := new(big.Int).SetBytes(iv)
			for range 512 / 16 {
				tweak := multiply(number, r.lrwKey).FillBytes(make([]byte, 16))
				secrets = append(secrets, tweak...)
				number.Add(number, big.NewInt(1))
			}
		}
	}
	return secrets
}

// TestScratchWiped looks on the stack for three such secrets in a row. Two may
// be there: the portable code has two at a time in variables.
func TestScratchWiped(t *testing.T) {
	// The garbage collector shrinks stacks, and below them lies other memory.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	const sectors, first = 70, 3
	for _, spec := range []string{"serpent-xts-plain64", "serpent-cbc-essiv:sha256", "serpent-lrw-benbi", "serpent-lrw-essiv:sha256"} {
		key := longestKey(t, spec)
		secrets := newReference(t, spec, key).secretsOf(first, sectors)
		if len(secrets) < sectors*16 {
			t.Fatalf("%s: %d bytes of secrets, want %d or more", spec, len(secrets), sectors*16)
		}
		for _, kernel := range serpent.Kernels() {
			s := newSectors(t, spec, key, 512, kernel)
			data := make([]byte, sectors*512)
			left := new([stackSize]byte)
			for op, do := range map[string]func(dst, src []byte, first uint64){"enc": s.Encrypt, "dec": s.Decrypt} {
				deepStack()
				do(data, data, first)
				stackBelow(left)
				for i := 0; i+48 <= len(secrets); i += 16 {
					if at := bytes.Index(left[:], secrets[i:i+48]); at >= 0 {
						t.Errorf("%s,%v,%s: secrets %d to %d are left %d bytes below", spec, kernel, op, i/16, i/16+2, stackSize-at)
						break
					}
				}
			}
		}
	}
}
