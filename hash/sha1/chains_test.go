package sha1

import (
	"bytes"
	stdsha1 "crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/crypto/pbkdf2"
)

// allKernels are those that can be used, and the choice among them.
func allChainKernels() []ChainKernel { return append([]ChainKernel{AutoChains}, ChainKernels()...) }

// newRandom returns a source of random numbers from a seed that the log shows.
func newRandom(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func draw(r *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// startedChains returns the chains of as many output blocks, each of a key and
// a salt of its own, and a function that returns what they must be after a
// number of iterations, from another implementation.
func startedChains(r *rand.Rand, n int) (chains []Chain, want func(iterations int) []byte) {
	type input struct {
		password, salt []byte
		index          uint32
	}
	chains = make([]Chain, n)
	inputs := make([]input, n)
	for i := range chains {
		in := input{draw(r, r.IntN(100)), draw(r, r.IntN(100)), 1 + r.Uint32N(5)}
		inputs[i] = in
		chains[i].Start(in.password, in.salt, in.index)
	}
	return chains, func(iterations int) (blocks []byte) {
		for _, in := range inputs {
			key := pbkdf2.Key(in.password, in.salt, iterations, int(in.index)*Size, stdsha1.New)
			blocks = append(blocks, key[len(key)-Size:]...)
		}
		return blocks
	}
}

func blocksOf(chains []Chain) (blocks []byte) {
	for i := range chains {
		blocks = append(blocks, chains[i].T[:]...)
	}
	return blocks
}

func iterate(t testing.TB, k ChainKernel, chains []Chain, n int) {
	t.Helper()
	if err := Iterate(k, chains, n); err != nil {
		t.Fatal(err)
	}
}

// TestIterate compares with another implementation of PBKDF2: each kernel, each
// number of chains, iterations in one call and in several.
func TestIterate(t *testing.T) {
	r := newRandom(t)
	for n := range 41 {
		start, want := startedChains(r, n)
		for _, parts := range [][]int{{}, {1}, {2}, {1, 1, 1}, {0, 5, 2}, {1 + r.IntN(40), r.IntN(3)}} {
			iterations := 1
			for _, part := range parts {
				iterations += part
			}
			wanted := want(iterations)
			for _, k := range allChainKernels() {
				chains := slices.Clone(start)
				for _, part := range parts {
					iterate(t, k, chains, part)
				}
				if !bytes.Equal(blocksOf(chains), wanted) {
					t.Errorf("%v: wrong blocks of %d chains after 1 + %v iterations", k, n, parts)
				}
				for i := range chains {
					if chains[i].inner != start[i].inner || chains[i].outer != start[i].outer {
						t.Errorf("%v: the key of chain %d of %d has changed", k, i, n)
					}
				}
			}
		}
	}
}

// TestIterateManyChains: as many as are planned at a time, and more.
func TestIterateManyChains(t *testing.T) {
	for _, n := range []int{maxPlanned - 1, maxPlanned, maxPlanned + 1, 3*maxPlanned + 7} {
		start, want := startedChains(newRandom(t), n)
		wanted := want(3)
		for _, k := range allChainKernels() {
			chains := slices.Clone(start)
			if iterate(t, k, chains, 2); !bytes.Equal(blocksOf(chains), wanted) {
				t.Errorf("%v: wrong blocks of %d chains", k, n)
			}
		}
	}
}

// TestIterateSeveralCalls: more iterations than a call of assembly does.
func TestIterateSeveralCalls(t *testing.T) {
	longest := 0
	for i := range passes {
		longest = max(longest, passes[i].iterationsPerCall())
	}
	iterations := 2*longest + 3
	start, want := startedChains(newRandom(t), 3)
	wanted := want(1 + iterations)
	for _, k := range allChainKernels() {
		chains := slices.Clone(start)
		if iterate(t, k, chains, iterations); !bytes.Equal(blocksOf(chains), wanted) {
			t.Errorf("%v: wrong blocks after 1 + %d iterations", k, iterations)
		}
	}
}

func TestChainKnownAnswers(t *testing.T) {
	// RFC 6070, section 2.
	for _, v := range []struct {
		password, salt string
		iterations     int
		key            string
	}{
		{"password", "salt", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"},
		{"password", "salt", 2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"},
		{"password", "salt", 4096, "4b007901b765489abead49d926f721d065a429c1"},
		{"passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096, "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"},
		{"pass\x00word", "sa\x00lt", 4096, "56fa6aa75548099dcc37d7f03425e0c3"},
	} {
		for _, k := range allChainKernels() {
			chains := make([]Chain, (len(v.key)/2+Size-1)/Size)
			for i := range chains {
				chains[i].Start([]byte(v.password), []byte(v.salt), uint32(i+1))
			}
			iterate(t, k, chains, v.iterations-1)
			if got := hex.EncodeToString(blocksOf(chains)[:len(v.key)/2]); got != v.key {
				t.Errorf("%v: got %s, want %s", k, got, v.key)
			}
		}
	}
}

// TestStart: passwords and salts of all lengths about those of blocks.
func TestStart(t *testing.T) {
	r := newRandom(t)
	for passwordBytes := range 2*BlockSize + 2 {
		for _, saltBytes := range []int{0, 1, 16, 32, 51, 52, 55, 56, 59, 60, 63, 64, 65, 127, 128, 200} {
			password, salt, index := draw(r, passwordBytes), draw(r, saltBytes), 1+r.Uint32N(3)
			var c Chain
			c.Start(password, salt, index)
			key := pbkdf2.Key(password, salt, 1, int(index)*Size, stdsha1.New)
			if want := key[len(key)-Size:]; !bytes.Equal(c.T[:], want) || c.u != c.T {
				t.Errorf("password of %d bytes, salt of %d, block %d: got %x and %x, want %x", passwordBytes, saltBytes, index, c.T, c.u, want)
			}
		}
	}
}

func TestStartOverwrites(t *testing.T) {
	var fresh, used Chain
	fresh.Start([]byte("password"), []byte("salt"), 1)
	used.Start([]byte("other"), []byte("salt"), 2)
	iterate(t, AutoChains, []Chain{used}, 3)
	if used.Start([]byte("password"), []byte("salt"), 1); used != fresh {
		t.Error("a chain that was in use starts differently")
	}
}

func TestIterateUnusableKernel(t *testing.T) {
	defer func(all []ChainKernel) { chainKernels = all }(chainKernels)
	chainKernels = []ChainKernel{ChainsGeneric}
	var chains [3]Chain
	for k, known := range map[ChainKernel]bool{ChainsSSE2: true, ChainsSHANI: true, 77: false} {
		var unusable *KernelError
		if err := Iterate(k, chains[:], 1); !errors.As(err, &unusable) || unusable.Known != known || unusable.Name != k.String() {
			t.Errorf("%v: got %v, want a kernel that cannot be used", k, err)
		}
		if err := SelfTestChains(k); !errors.As(err, &unusable) {
			t.Errorf("self test of %v: got %v", k, err)
		}
	}
	if chains != [3]Chain{} {
		t.Error("chains have moved")
	}
	iterate(t, AutoChains, chains[:], 1)
	if chains == [3]Chain{} {
		t.Error("no chain has moved")
	}
}

func TestSelfTestChains(t *testing.T) {
	for _, k := range allChainKernels() {
		if err := SelfTestChains(k); err != nil {
			t.Error(err)
		}
	}
}

func TestParseChainKernel(t *testing.T) {
	for _, k := range allChainKernels() {
		for _, name := range []string{k.String(), fmt.Sprintf("%c%s", k.String()[0]-'a'+'A', k.String()[1:])} {
			if got, err := ParseChainKernel(name); got != k || err != nil {
				t.Errorf("%q: got %v, %v", name, got, err)
			}
		}
	}
	for _, name := range []string{"", "looped", "sse", "avx2 "} {
		var unknown *KernelError
		if _, err := ParseChainKernel(name); !errors.As(err, &unknown) || unknown.Known || unknown.Name != name {
			t.Errorf("%q: got %v, want an unknown kernel", name, err)
		}
	}
	if got := ChainKernel(77).String(); got != "ChainKernel(77)" {
		t.Errorf("got %q", got)
	}
}

// FuzzIterate compares all kernels with the portable code: any states, any
// number of chains.
func FuzzIterate(f *testing.F) {
	r := newRandom(f)
	f.Add(draw(r, 4*Size), uint8(1), uint8(1))
	f.Add(draw(r, 200), uint8(4), uint8(2))
	f.Add(bytes.Repeat([]byte{0xff}, 4*Size), uint8(40), uint8(3))
	f.Fuzz(func(t *testing.T, seed []byte, n, iterations uint8) {
		chains := make([]Chain, n)
		for i := range chains {
			for j, part := range []*[Size]byte{&chains[i].inner, &chains[i].outer, &chains[i].u, &chains[i].T} {
				// Whatever the seed lacks is as good as random.
				sum := Sum(binary.BigEndian.AppendUint32(slices.Clone(seed), uint32(4*i+j)))
				copy(part[copy(part[:], seed[min(len(seed), (4*i+j)*Size):]):], sum[:])
			}
		}
		want := slices.Clone(chains)
		iterate(t, ChainsGeneric, want, int(iterations))
		for _, k := range allChainKernels() {
			got := slices.Clone(chains)
			if iterate(t, k, got, int(iterations)); !slices.Equal(got, want) {
				t.Errorf("%v: %d iterations of %d chains differ from those of the portable code", k, iterations, n)
			}
		}
	})
}

func BenchmarkIterate(b *testing.B) {
	for _, k := range allChainKernels() {
		for _, n := range []int{1, 4, 8, 32} {
			b.Run(fmt.Sprintf("%v,chains=%d", k, n), func(b *testing.B) {
				const iterations = 1000
				chains := make([]Chain, n)
				for b.Loop() {
					iterate(b, k, chains, iterations)
				}
				b.ReportMetric(float64(n*iterations)*float64(b.N)/b.Elapsed().Seconds(), "iterations/s")
			})
		}
	}
}
