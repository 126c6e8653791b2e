package sha1

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"
)

const stackSize = 16 << 10

// deepStack makes room on the goroutine's stack, so that it does not move
// before stackBelow looks at it, and clears it.
//
//go:noinline
func deepStack() {
	var room [2 * stackSize]byte
	wipe(&room)
}

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

// swapWords reverses the bytes of each word, of which this CPU may have the
// lowest first.
func swapWords(b []byte) []byte {
	var swapped []byte
	for ; len(b) >= 4; b = b[4:] {
		swapped = binary.NativeEndian.AppendUint32(swapped, binary.BigEndian.Uint32(b))
	}
	return swapped
}

// schedule returns the last 16 words of a block's schedule, as bytes.
func schedule(block []byte) (b []byte) {
	var w [16]uint32
	for i := range 80 {
		if i < 16 {
			load(&w, (*[BlockSize]byte)(block), i)
		} else {
			expand(&w, i)
		}
	}
	for _, word := range w {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return b
}

// partsOf returns which parts of the secrets are in memory.
func partsOf(memory []byte, secrets map[string][]byte) (found []string) {
	for what, secret := range secrets {
		for _, form := range [][]byte{secret, swapWords(secret)} {
			for i := 0; i+16 <= len(form); i += 16 {
				if bytes.Contains(memory, form[i:i+16]) {
					found = append(found, fmt.Sprintf("byte %d of %s", i, what))
				}
			}
		}
	}
	return found
}

// TestStackWiped looks for parts of the message, of the schedule and of hash
// values on the stack.
func TestStackWiped(t *testing.T) {
	// The garbage collector shrinks stacks, and below them lies other memory.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	left := new([stackSize]byte)
	message := randomBytes(t, 3*BlockSize+50)
	secrets := map[string][]byte{"message": message}
	state := initial
	for i := range 3 {
		block := message[i*BlockSize:][:BlockSize]
		compress(Generic, &state, &state, block, nil)
		secrets["hash value "+string(rune('1'+i))] = bytes.Clone(state[:16])
		secrets["schedule "+string(rune('1'+i))] = schedule(block)
	}
	for _, k := range Kernels() {
		h := NewKernel(k)
		var sum [Size]byte
		for name, do := range map[string]func(){
			"sum":   func() { sumKernel(k, &sum, message) },
			"Write": func() { h.Reset(); h.Write(message[:70]); h.Write(message[70:]) },
			"Sum":   func() { h.Sum(sum[:0]) },
		} {
			look := func() []string {
				deepStack()
				do()
				stackBelow(left)
				return partsOf(left[:], secrets)
			}
			// The runtime may interrupt what is under way, and keeps the registers
			// there meanwhile. That does not happen every time.
			found := look()
			for try := 1; try < 5 && len(found) > 0; try++ {
				found = look()
			}
			for _, part := range found {
				t.Errorf("%v, %s: %s is on the stack", k, name, part)
			}
		}
		if got := h.Sum(nil); !bytes.Equal(got, sum[:]) {
			t.Errorf("%v: nothing was computed", k)
		}
		h.Reset()
		if d := h.(*digest); *d != (digest{state: initial, kernel: k}) {
			t.Errorf("%v: Reset leaves %+v", k, d)
		}
	}
}
