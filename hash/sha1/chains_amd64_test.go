//go:build !purego

package sha1

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/klauspost/cpuid/v2"

	"serpcrypt/internal/guarded"
)

func TestChainKernelsOfCPU(t *testing.T) {
	for _, c := range []struct {
		name     string
		features []cpuid.FeatureID
		want     []ChainKernel
	}{
		{"nothing", nil, nil},
		{"SSE2", []cpuid.FeatureID{cpuid.SSE2}, []ChainKernel{ChainsScalar, ChainsSSE2}},
		{"Goldmont", []cpuid.FeatureID{cpuid.SSE2, cpuid.SHA}, []ChainKernel{ChainsScalar, ChainsSSE2, ChainsSHANI}},
		{"Haswell", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX, cpuid.AVX2}, []ChainKernel{ChainsScalar, ChainsSSE2, ChainsAVX2}},
		{"Knights Landing", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX2, cpuid.AVX512F}, []ChainKernel{ChainsScalar, ChainsSSE2, ChainsAVX2}},
		{"Zen 3", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX2, cpuid.SHA}, []ChainKernel{ChainsScalar, ChainsSSE2, ChainsAVX2, ChainsSHANI}},
		{"Skylake-X", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512VL}, []ChainKernel{ChainsScalar, ChainsSSE2, ChainsAVX2, ChainsAVX512}},
		{"Ice Lake", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512VL, cpuid.SHA}, []ChainKernel{ChainsScalar, ChainsSSE2, ChainsAVX2, ChainsAVX512, ChainsSHANI}},
	} {
		var cpu cpuid.CPUInfo
		cpu.Enable(c.features...)
		if got := usableForChains(&cpu); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if !slices.Contains(ChainKernels(), ChainsSSE2) {
		t.Error("this amd64 CPU has no SSE2, which all have")
	}
}

// TestPlanOfCPU looks at what is chosen for some CPUs. Without it a wrong choice
// would only be slow.
func TestPlanOfCPU(t *testing.T) {
	defer func(was bool) { amd = was }(amd)
	portable := []ChainKernel{ChainsGeneric, ChainsScalar}
	sse2 := append(slices.Clone(portable), ChainsSSE2)
	avx2 := append(slices.Clone(sse2), ChainsAVX2)
	avx512 := append(slices.Clone(avx2), ChainsAVX512)
	shani := func(kernels []ChainKernel) []ChainKernel { return append(slices.Clone(kernels), ChainsSHANI) }
	scalar1 := shape{ChainsScalar, 1}
	for _, c := range []struct {
		name    string
		amd     bool
		kernel  ChainKernel
		kernels []ChainKernel
		chains  int
		want    []shape
	}{
		{"386", false, AutoChains, portable, 3, []shape{scalar1, scalar1, scalar1}},
		{"SSE2", false, AutoChains, sse2, 1, []shape{scalar1}},
		{"SSE2", false, AutoChains, sse2, 3, []shape{{ChainsSSE2, 4}}},
		{"SSE2", true, AutoChains, sse2, 8, []shape{{ChainsSSE2, 8}}},
		{"Haswell", false, AutoChains, avx2, 1, []shape{scalar1}},
		{"Haswell", false, AutoChains, avx2, 4, []shape{{ChainsAVX2, 8}}},
		{"Haswell", false, AutoChains, avx2, 16, []shape{{ChainsAVX2, 16}}},
		{"Zen 3", true, AutoChains, shani(avx2), 4, []shape{{ChainsSHANI, 4}}},
		{"Zen 3", true, AutoChains, shani(avx2), 32, slices.Repeat([]shape{{ChainsSHANI, 4}}, 8)},
		{"Zen 5", true, AutoChains, shani(avx512), 1, []shape{{ChainsSHANI, 1}}},
		{"Zen 5", true, AutoChains, shani(avx512), 4, []shape{{ChainsSHANI, 4}}},
		{"Zen 5", true, AutoChains, shani(avx512), 16, []shape{{ChainsAVX512, 16}}},
		{"Zen 5", true, AutoChains, shani(avx512), 20, []shape{{ChainsAVX512, 32}}},
		{"Zen 5", true, AutoChains, shani(avx512), 32, []shape{{ChainsAVX512, 32}}},
		{"Sapphire Rapids", false, AutoChains, shani(avx512), 1, []shape{{ChainsSHANI, 1}}},
		{"Sapphire Rapids", false, AutoChains, shani(avx512), 2, []shape{{ChainsAVX512, 4}}},
		{"Sapphire Rapids", false, AutoChains, shani(avx512), 4, []shape{{ChainsAVX512, 4}}},
		{"Sapphire Rapids", false, AutoChains, shani(avx512), 5, []shape{{ChainsAVX512, 8}}},
		{"Sapphire Rapids", false, AutoChains, shani(avx512), 8, []shape{{ChainsAVX512, 8}}},
		{"Sapphire Rapids", false, AutoChains, shani(avx512), 9, []shape{{ChainsAVX512, 16}}},
		{"Sapphire Rapids", false, AutoChains, shani(avx512), 20, []shape{{ChainsAVX512, 4}, {ChainsAVX512, 16}}},
		{"Sapphire Rapids", false, AutoChains, shani(avx512), 32, []shape{{ChainsAVX512, 32}}},
		{"Sapphire Rapids", false, AutoChains, shani(avx512), 33, []shape{{ChainsAVX512, 32}, {ChainsSHANI, 1}}},
		{"forced", false, ChainsSHANI, shani(avx512), 40, slices.Repeat([]shape{{ChainsSHANI, 4}}, 10)},
		{"forced", true, ChainsSHANI, shani(avx512), 7, []shape{{ChainsSHANI, 3}, {ChainsSHANI, 4}}},
		{"forced", false, ChainsAVX2, shani(avx512), 1, []shape{{ChainsAVX2, 8}}},
		{"forced", false, ChainsGeneric, shani(avx512), 2, []shape{{ChainsGeneric, 1}, {ChainsGeneric, 1}}},
	} {
		amd = c.amd
		list, err := passesOf(c.kernel, c.kernels)
		if err != nil {
			t.Fatal(err)
		}
		var got []shape
		for _, p := range plan(list, c.chains) {
			got = append(got, p.shape)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %v, %d chains: got %v, want %v", c.name, c.kernel, c.chains, got, c.want)
		}
	}
}

// assemblyPasses are those whose code is called through chainMemory.
func assemblyPasses(t *testing.T) (list []pass) {
	for _, p := range passes {
		if p.kernel != ChainsGeneric && p.kernel != ChainsScalar && p.kernel.check(chainKernels) == nil {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		t.Fatal("no pass is in assembly")
	}
	return list
}

// scratchWords are how many words of the scratch each kernel writes, which none
// has in common with another for as many chains.
var scratchWords = map[shape]int{
	{ChainsSSE2, 4}: 8 * 4, {ChainsSSE2, 8}: 15 * 8,
	{ChainsAVX2, 8}: 8 * 8, {ChainsAVX2, 16}: 15 * 16,
	{ChainsAVX512, 4}: 64 * 4, {ChainsAVX512, 8}: 0, {ChainsAVX512, 16}: 0, {ChainsAVX512, 32}: 8 * 32,
	{ChainsSHANI, 1}: 16, {ChainsSHANI, 2}: 2 * 16, {ChainsSHANI, 3}: 3 * 16, {ChainsSHANI, 4}: 4 * 16,
}

// outcomeEnd returns where the scratch starts.
func (s shape) outcomeEnd() int {
	if s.kernel == ChainsSHANI {
		return 4 * (2*maxRegisters*registerRows + 2*maxRegisters)
	}
	return (rowOutcome + 5) * s.chains
}

// TestPasses proves that each pass runs the code that is meant, and with
// memory between guard pages, that this stays within it. What the code must not
// change, it does not.
func TestPasses(t *testing.T) {
	const memoryBytes = memoryWords * 4
	memory := guarded.Memory(t, memoryBytes)
	r := newRandom(t)
	for _, p := range assemblyPasses(t) {
		for _, offset := range []int{0, 4, 20, len(memory) - memoryBytes - 4, len(memory) - memoryBytes} {
			m := (*chainMemory)(unsafe.Pointer(&memory[offset]))
			clear(m[:])
			for i := p.outcomeEnd(); i < len(m); i++ {
				m[i] = r.Uint32()
			}
			chains := randomChains(r, p.chains)
			want := slices.Clone(chains)
			p.pack(m, chains)
			before := *m
			p.call(m, 1)
			p.unpack(chains, m)
			for i := range want {
				if want[i].iterateStream(Generic, 1); chains[i] != want[i] {
					t.Errorf("%v, offset %d: chain %d is wrong", p.shape, offset, i)
				}
			}
			scratch := 0
			for i := range m {
				switch changed := m[i] != before[i]; {
				case changed && i >= p.outcomeEnd():
					scratch++
				case changed && !p.mayChange(i):
					t.Errorf("%v, offset %d: word %d has changed", p.shape, offset, i)
				}
			}
			if scratch != scratchWords[p.shape] {
				t.Errorf("%v, offset %d: %d words of scratch were written, want %d", p.shape, offset, scratch, scratchWords[p.shape])
			}
		}
	}
}

// mayChange tells whether a word is in the outcomes or sums of the chains.
func (s shape) mayChange(word int) bool {
	if s.kernel != ChainsSHANI {
		row := word / s.chains
		return row >= rowOutcome || row%halfRows >= rowSum
	}
	row := word / registerWords
	if first := 2 * maxRegisters * registerRows; row >= first {
		return (row-first)/2 < s.chains
	}
	return row%registerRows >= rowSumABCD && row/registerRows%maxRegisters < s.chains
}

func randomChains(r *rand.Rand, n int) []Chain {
	chains := make([]Chain, n)
	for i := range chains {
		for _, part := range []*[Size]byte{&chains[i].inner, &chains[i].outer, &chains[i].u, &chains[i].T} {
			copy(part[:], draw(r, Size))
		}
	}
	return chains
}

func TestCallsAreShort(t *testing.T) {
	for _, p := range passes {
		for _, amd = range []bool{false, true} {
			if n := p.iterationsPerCall(); n < 100 || n*p.cycles() > callCycles {
				t.Errorf("%v: %d iterations in a call", p.shape, n)
			}
		}
	}
}

func (s shape) String() string { return fmt.Sprintf("%v x%d", s.kernel, s.chains) }
