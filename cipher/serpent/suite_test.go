package serpent

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"serpcrypt/internal/guarded"
)

// Each test of this file runs each operation by each kernel and compares with
// the reference.

const maxBlocks = 200 // more than twice what the largest pass takes

func eachKernel(t *testing.T, f func(t *testing.T, c *Cipher, o operation)) {
	for _, k := range Kernels() {
		for _, o := range operations {
			t.Run(fmt.Sprintf("%v/%s", k, o.name), func(t *testing.T) { f(t, newTestCipher(t, k), o) })
		}
	}
}

var testKey = countUp(32, 37)

func newTestCipher(t testing.TB, k Kernel) *Cipher {
	t.Helper()
	c := new(Cipher)
	if err := c.Init(testKey, k); err != nil {
		t.Fatal(err)
	}
	return c
}

// randomText and randomIVs return the same bytes in each run.
func randomText(n int) []byte { return randomBytes(n, 1) }
func randomIVs(n int) []byte  { return randomBytes(n, 2) }

func randomBytes(n int, seed byte) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// wantSector returns what the reference makes of one sector. What it makes of
// fewer blocks is the beginning of that.
func wantSector(o operation, src, ivs []byte) []byte {
	want := make([]byte, len(src))
	o.want(newReference(testKey), want, src, ivs[:o.ivBytes(1, len(src))])
	return want
}

func TestLengthsBetweenGuardPages(t *testing.T) {
	const size = maxBlocks * BlockSize
	text, ivs := randomText(size), randomIVs(size)
	srcPage, dstPage, ivPage := guarded.Memory(t, size), guarded.Memory(t, size), guarded.Memory(t, size)
	start := func(page []byte, n int) []byte { return page[:n] }
	end := func(page []byte, n int) []byte { return page[len(page)-n:] }
	eachKernel(t, func(t *testing.T, c *Cipher, o operation) {
		want := wantSector(o, text, ivs)
		for blocks := range maxBlocks + 1 {
			n := blocks * BlockSize
			for i, at := range []func(page []byte, n int) []byte{start, end} {
				src, dst, iv := at(srcPage, n), at(dstPage, n), at(ivPage, o.ivBytes(1, n))
				copy(src, text)
				copy(iv, ivs)
				clear(dst)
				o.run(c, dst, src, iv)
				if !bytes.Equal(dst, want[:n]) {
					t.Fatalf("%d blocks, place %d: got %x, want %x", blocks, i, dst, want[:n])
				}
				if !bytes.Equal(src, text[:n]) || !bytes.Equal(iv, ivs[:len(iv)]) {
					t.Fatalf("%d blocks: the input was changed", blocks)
				}
				o.run(c, src, src, iv)
				if !bytes.Equal(src, want[:n]) {
					t.Fatalf("%d blocks, place %d, in place: got %x, want %x", blocks, i, src, want[:n])
				}
			}
		}
	})
}

// TestMisaligned lets all arguments start at each address modulo 16, and looks
// at the bytes around the output.
func TestMisaligned(t *testing.T) {
	const size = maxBlocks * BlockSize
	text, ivs := randomText(size), randomIVs(size)
	eachKernel(t, func(t *testing.T, c *Cipher, o operation) {
		want := wantSector(o, text, ivs)
		for offset := range BlockSize {
			for _, blocks := range []int{1, 2, 3, 4, 7, 9, 13, 19, 33} {
				n := blocks * BlockSize
				src := append(make([]byte, offset), text[:n]...)[offset:]
				iv := append(make([]byte, (3*offset)%BlockSize), ivs[:o.ivBytes(1, n)]...)[3*offset%BlockSize:]
				around := bytes.Repeat([]byte{0xa5}, n+4*BlockSize)
				from := 2*BlockSize - 5*offset%BlockSize
				o.run(c, around[from:], src, iv)
				if got := around[from : from+n]; !bytes.Equal(got, want[:n]) {
					t.Fatalf("offset %d, %d blocks: got %x, want %x", offset, blocks, got, want[:n])
				}
				if rest := append(around[:from:from], around[from+n:]...); len(bytes.Trim(rest, "\xa5")) > 0 {
					t.Fatalf("offset %d, %d blocks: wrote beside the output", offset, blocks)
				}
			}
		}
	})
}

// TestSectors gives each operation runs of sectors, up to pages that must not be
// touched.
func TestSectors(t *testing.T) {
	const maxSize = 512
	counts := []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 24, 25, 31, 32, 33, 48, 49, 63, 80, 96, 97, 112, 113, 128, 193}
	maxSectors := slices.Max(counts)
	r := newReference(testKey)
	// Sector i of any size starts with the same bytes, and so does the outcome.
	text, ivs := randomText(maxSectors*maxSize), randomIVs(maxSectors*BlockSize)
	copy(ivs[BlockSize:], bytes.Repeat([]byte{0xff}, 2*BlockSize)) // counters that carry over
	copy(ivs[4*BlockSize+8:], bytes.Repeat([]byte{0xff}, 7))       // after a few blocks
	srcPage, dstPage := guarded.Memory(t, len(text)), guarded.Memory(t, len(text))
	fill := func(dst, b []byte, n, size int) {
		for i := range n {
			copy(dst[i*size:(i+1)*size], b[i*maxSize:])
		}
	}
	eachKernel(t, func(t *testing.T, c *Cipher, o operation) {
		if o.ivs != ivPerSector {
			return
		}
		wants := make([]byte, len(text))
		for i := range maxSectors {
			o.want(r, wants[i*maxSize:][:maxSize], text[i*maxSize:][:maxSize], ivs[i*BlockSize:][:BlockSize])
		}
		for _, size := range []int{0, 16, 32, 48, 64, 80, 128, 192, 208, 320, 512} {
			for _, n := range counts {
				src, dst, want := srcPage[len(srcPage)-n*size:], dstPage[:n*size], make([]byte, n*size)
				if n%2 == 1 {
					src, dst = srcPage[:n*size], dstPage[len(dstPage)-n*size:]
				}
				fill(src, text, n, size)
				fill(want, wants, n, size)
				iv := bytes.Clone(ivs[:n*BlockSize])
				o.run(c, dst, src, iv)
				if !bytes.Equal(dst, want) {
					t.Fatalf("%d sectors of %d bytes: got %x, want %x", n, size, dst, want)
				}
				if !bytes.Equal(iv, ivs[:n*BlockSize]) {
					t.Fatalf("%d sectors of %d bytes: IVs were changed", n, size)
				}
				o.run(c, src, src, iv)
				if !bytes.Equal(src, want) {
					t.Fatalf("%d sectors of %d bytes, in place: got %x, want %x", n, size, src, want)
				}
			}
		}
	})
}

// TestLargeSectors compares kernels with the portable code, which the other
// tests compare with the reference.
func TestLargeSectors(t *testing.T) {
	generic := newTestCipher(t, Generic)
	eachKernel(t, func(t *testing.T, c *Cipher, o operation) {
		for _, size := range []int{1024, 2048, 4096} {
			for _, sectors := range []int{1, 7, 32} {
				src := randomText(sectors * size)
				ivs := randomIVs(o.ivBytes(sectors, size))
				got, want := make([]byte, len(src)), make([]byte, len(src))
				o.run(generic, want, src, ivs)
				o.run(c, got, src, ivs)
				if !bytes.Equal(got, want) {
					t.Fatalf("%d sectors of %d bytes: differs from the portable code", sectors, size)
				}
				undo := operationNamed(t, o.inverse)
				if undo.run(c, got, got, ivs); !bytes.Equal(got, src) {
					t.Fatalf("%d sectors of %d bytes: %s does not undo it", sectors, size, o.inverse)
				}
			}
		}
	})
}

func operationNamed(t testing.TB, name string) operation {
	t.Helper()
	for _, o := range operations {
		if o.name == name {
			return o
		}
	}
	t.Fatalf("no operation %q", name)
	panic("unreachable")
}

func TestNoAllocation(t *testing.T) {
	src := randomText(33 * 512)
	dst := make([]byte, len(src))
	eachKernel(t, func(t *testing.T, c *Cipher, o operation) {
		ivs := randomIVs(o.ivBytes(33, 512))
		if n := testing.AllocsPerRun(10, func() { o.run(c, dst, src, ivs) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestWhichCodeRuns proves that the cipher's kernel does whatever it should,
// and no other. Each kernel, and the portable code, read round keys of their
// own: so the blocks that change when those are spoilt were done by their reader.
func TestWhichCodeRuns(t *testing.T) {
	eachKernel(t, func(t *testing.T, c *Cipher, o operation) {
		for units := range maxBlocks + 1 {
			// Lanes are blocks; in CBC encryption they are sectors.
			sectors, size := 1, units*BlockSize
			if o.name == "EncryptCBC" {
				sectors, size = units, 5*BlockSize
			}
			byVector := vectorUnits(c.Kernel(), units, o.name == "EncryptCBC")
			src, ivs := randomText(sectors*size), randomIVs(o.ivBytes(sectors, size))
			right := make([]byte, len(src))
			o.run(c, right, src, ivs)
			for _, k := range Kernels() {
				from, to := 0, 0 // the units that only the keys of k can change
				switch k {
				case Generic:
					from, to = byVector, units
				case c.Kernel():
					to = byVector
				}
				spoilt, got := *c, make([]byte, len(src))
				spoilKeys(&spoilt, k)
				o.run(&spoilt, got, src, ivs)
				for i := range units {
					unit := func(b []byte) []byte { return b[i*len(src)/units : (i+1)*len(src)/units] }
					if changed := !bytes.Equal(unit(got), unit(right)); changed != (from <= i && i < to) {
						t.Fatalf("unit %d of %d was done by %v: %v, want %v", i, units, k, changed, !changed)
					}
				}
			}
		}
	})
}

// vectorUnits returns how many of n blocks, or sectors in CBC encryption, are
// for the vector kernel k: all but so few at the end of a run of blocks, or in
// all, that the portable code is as fast.
func vectorUnits(k Kernel, n int, sectors bool) int {
	lanes := map[Kernel]struct{ group, least int }{SSE2: {4, 3}, AVX2: {8, 3}, AVX512: {16, 1}}[k]
	switch {
	case lanes.group == 0 || n < lanes.least:
		return 0
	case sectors || n%lanes.group >= lanes.least:
		return n
	}
	return n - n%lanes.group
}

func spoilKeys(c *Cipher, k Kernel) {
	if k == Generic {
		spoil(&c.pairs)
	} else {
		spoilVectorKeys(&c.vector, k)
	}
}
