package sha1

import (
	"bytes"
	stdsha1 "crypto/sha1"
	"encoding"
	"testing"
)

func FuzzAgainstStandardLibrary(f *testing.F) {
	f.Add([]byte("abc"), uint16(1))
	f.Add(make([]byte, 64), uint16(64))
	f.Add(make([]byte, 200), uint16(55))
	f.Fuzz(func(t *testing.T, p []byte, at uint16) {
		want := stdsha1.Sum(p)
		if got := Sum(p); got != want {
			t.Errorf("Sum(%x) is %x, want %x", p, got, want)
		}
		split := int(at) % (len(p) + 1)
		for i, k := range Kernels() {
			first := NewKernel(k)
			first.Write(p[:split])
			second := NewKernel(Kernels()[(i+1)%len(kernels)]) // the state means the same to all
			if err := second.(encoding.BinaryUnmarshaler).UnmarshalBinary(marshal(t, first)); err != nil {
				t.Fatal(err)
			}
			second.Write(p[split:])
			if got := second.Sum(nil); !bytes.Equal(got, want[:]) {
				t.Errorf("%v, %x split at %d: got %x, want %x", k, p, split, got, want)
			}
			var got [Size]byte
			if sumKernel(k, &got, p); got != want {
				t.Errorf("%v: sum of %x is %x, want %x", k, p, got, want)
			}
		}
	})
}

func FuzzUnmarshal(f *testing.F) {
	h := New()
	h.Write(make([]byte, 70))
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state)
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, state []byte) {
		h := New()
		if h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state) == nil {
			if again := marshal(t, h); !bytes.Equal(again, state) {
				t.Errorf("took %x and gives back %x", state, again)
			}
		}
	})
}
