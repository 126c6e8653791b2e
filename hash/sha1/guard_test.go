package sha1

import (
	"bytes"
	stdsha1 "crypto/sha1"
	"testing"

	"serpcrypt/internal/guarded"
)

// TestGuardPages puts all that a kernel gets at the ends of memory.
func TestGuardPages(t *testing.T) {
	const longest = 12*BlockSize + 3
	text := randomBytes(t, longest)
	message, src, dst, tail := guarded.Memory(t, longest), guarded.Memory(t, Size), guarded.Memory(t, Size), guarded.Memory(t, BlockSize)
	start := func(b []byte, n int) []byte { return b[:n] }
	end := func(b []byte, n int) []byte { return b[len(b)-n:] }
	for name, at := range map[string]func(b []byte, n int) []byte{"start": start, "end": end} {
		for n := range longest + 1 {
			p := at(message, n)
			copy(p, text)
			want := stdsha1.Sum(p)
			whole := n &^ (BlockSize - 1)
			rest := (*[BlockSize]byte)(at(tail, BlockSize))
			*rest = [BlockSize]byte{}
			copy(rest[:], p[whole:])
			for _, k := range Kernels() {
				copy(at(src, Size), initial[:])
				finish(k, (*[Size]byte)(at(dst, Size)), (*[Size]byte)(at(src, Size)), p[:whole], rest, uint64(n))
				if !bytes.Equal(at(dst, Size), want[:]) {
					t.Fatalf("%v, %s, len=%d: got %x, want %x", k, name, n, at(dst, Size), want)
				}
				if !bytes.Equal(at(src, Size), initial[:]) || !bytes.Equal(p, text[:n]) {
					t.Fatalf("%v, %s, len=%d: what is read only was written", k, name, n)
				}
				var sum [Size]byte
				if sumKernel(k, &sum, p); sum != want {
					t.Fatalf("%v, %s, len=%d: sum is %x, want %x", k, name, n, sum, want)
				}
			}
		}
	}
}

// TestOffsets: messages and hash values are anywhere in memory.
func TestOffsets(t *testing.T) {
	text := randomBytes(t, 12*BlockSize)
	sum := stdsha1.Sum(text)
	buffer := make([]byte, len(text)+64)
	for offset := range 64 {
		p := buffer[offset : offset+len(text)]
		copy(p, text)
		for _, k := range Kernels() {
			state := (*[Size]byte)(buffer[(offset+31)%40:]) // over a part of the message
			var got [Size]byte
			sumKernel(k, &got, p)
			if got != sum {
				t.Fatalf("%v, offset %d: got %x, want %x", k, offset, got, sum)
			}
			*state = initial
			compress(k, state, state, text, nil)
			var want [Size]byte
			compress(Generic, &want, &initial, text, nil)
			if *state != want {
				t.Fatalf("%v, offset %d: in place got %x, want %x", k, offset, *state, want)
			}
			copy(p, text)
		}
	}
}
