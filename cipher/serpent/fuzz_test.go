package serpent

import (
	"bytes"
	"testing"
)

// FuzzKernels compares all kernels with the portable code: any key, data, IVs
// and number of sectors.
func FuzzKernels(f *testing.F) {
	f.Add(testKey, randomText(40*BlockSize), randomIVs(40*BlockSize), uint8(1))
	f.Add(testKey[:24], randomText(63*BlockSize), randomIVs(63*BlockSize), uint8(21))
	f.Add(testKey[:16], bytes.Repeat([]byte{0xff}, 8*BlockSize), bytes.Repeat([]byte{0xff}, 8*BlockSize), uint8(2))
	f.Fuzz(func(t *testing.T, key, src, ivs []byte, sectors uint8) {
		var generic, c Cipher
		if generic.Init(key, Generic) != nil || sectors == 0 {
			return
		}
		size := len(src) / int(sectors) &^ (BlockSize - 1)
		src = src[:size*int(sectors)]
		for _, k := range Kernels() {
			if err := c.Init(key, k); err != nil {
				t.Fatal(err)
			}
			for _, o := range operations {
				iv := make([]byte, o.ivBytes(int(sectors), size))
				copy(iv, ivs)
				got, want := make([]byte, len(src)), make([]byte, len(src))
				o.run(&generic, want, src, iv)
				o.run(&c, got, src, iv)
				if !bytes.Equal(got, want) {
					t.Errorf("%v: %s of %d sectors of %d bytes: got %x, want %x", k, o.name, sectors, size, got, want)
				}
				undo := operationNamed(t, o.inverse)
				if undo.run(&c, got, got, iv); !bytes.Equal(got, src) {
					t.Errorf("%v: %s does not undo %s", k, o.inverse, o.name)
				}
			}
		}
	})
}
