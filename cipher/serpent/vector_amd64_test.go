//go:build !purego

package serpent

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/cpuid/v2"
)

func TestVectorKernelsOfCPU(t *testing.T) {
	type cpuCase struct {
		name     string
		features []cpuid.FeatureID
		want     []Kernel
	}
	cases := []cpuCase{
		{"nothing", nil, nil},
		{"SSE only", []cpuid.FeatureID{cpuid.SSE}, nil},
		{"SSE2", []cpuid.FeatureID{cpuid.SSE, cpuid.SSE2}, []Kernel{SSE2}},
		{"AVX but not AVX2", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX}, []Kernel{SSE2}},
		{"Haswell", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX, cpuid.AVX2}, []Kernel{SSE2, AVX2}},
		{"Knights Landing", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX, cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512CD}, []Kernel{SSE2, AVX2}},
		{"Skylake-X", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX, cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512CD, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL}, []Kernel{SSE2, AVX2, AVX512}},
	}
	// All four are needed.
	wide := []cpuid.FeatureID{cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL}
	for i, lacking := range wide {
		cases = append(cases, cpuCase{"without " + lacking.String(), append([]cpuid.FeatureID{cpuid.SSE2, cpuid.AVX, cpuid.AVX2}, slices.Delete(slices.Clone(wide), i, i+1)...), []Kernel{SSE2, AVX2}})
	}
	for _, c := range cases {
		var cpu cpuid.CPUInfo
		cpu.Enable(c.features...)
		if got := usable(&cpu); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if !slices.Contains(Kernels(), SSE2) {
		t.Error("this amd64 CPU has no SSE2, which all have")
	}
}

// TestRequirements compares what each kernel asks the CPU for with what its
// instructions need, as the generator has it above each function.
func TestRequirements(t *testing.T) {
	requires := regexp.MustCompile(`(?m)^// Requires: (.*)$`)
	for _, r := range requirements {
		// All gather some sectors by SSE2.
		needed := map[string]bool{cpuid.SSE2.String(): true}
		file := "kernels_" + r.kernel.String() + "_amd64.s"
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := requires.FindAllSubmatch(code, -1)
		if functions := strings.Count(string(code), "\nTEXT "); len(lines) != functions || functions == 0 {
			t.Errorf("%s: %d functions, and what %d of them require", file, functions, len(lines))
		}
		for _, line := range lines {
			for name := range strings.SplitSeq(string(line[1]), ", ") {
				needed[name] = true
			}
		}
		for _, feature := range r.features {
			if !needed[feature.String()] {
				t.Errorf("%v asks for %v, which it does not need", r.kernel, feature)
			}
			delete(needed, feature.String())
		}
		if len(needed) > 0 {
			t.Errorf("%v does not ask for %v, which it needs", r.kernel, needed)
		}
	}
}

// TestPasses looks at how runs of blocks are divided.
func TestPasses(t *testing.T) {
	for _, c := range []struct {
		kernel Kernel
		blocks int
		want   []int
	}{
		{Generic, 100, nil},
		{SSE2, 2, nil}, {SSE2, 3, []int{3}}, {SSE2, 4, []int{4}}, {SSE2, 6, []int{4}}, {SSE2, 11, []int{8, 3}},
		{SSE2, 12, []int{12}}, {SSE2, 16, []int{8, 8}}, {SSE2, 32, []int{12, 12, 8}}, {SSE2, 33, []int{12, 12, 8}},
		{AVX2, 2, nil}, {AVX2, 7, []int{7}}, {AVX2, 8, []int{8}}, {AVX2, 26, []int{24}}, {AVX2, 32, []int{16, 16}},
		{AVX2, 256, []int{24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 16}},
		{AVX512, 1, []int{1}}, {AVX512, 17, []int{16, 1}}, {AVX512, 32, []int{32}}, {AVX512, 80, []int{48, 32}},
		{AVX512, 96, []int{96}}, {AVX512, 128, []int{64, 64}}, {AVX512, 176, []int{48, 64, 64}}, {AVX512, 256, []int{96, 96, 64}},
	} {
		var got []int
		p := passesOf[c.kernel]
		for left := c.blocks * BlockSize; p.size(left) > 0; {
			got = append(got, p.size(left)/BlockSize)
			left -= p.size(left)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v, %d blocks: got passes of %v, want %v", c.kernel, c.blocks, got, c.want)
		}
	}
}

// TestRoom looks at how wide a pass is that has to be filled up.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		kernel       Kernel
		blocks, want int
	}{
		{SSE2, 3, 4}, {SSE2, 8, 8}, {AVX2, 3, 8}, {AVX2, 24, 24},
		{AVX512, 1, 1}, {AVX512, 2, 2}, {AVX512, 3, 4}, {AVX512, 4, 4}, {AVX512, 5, 8}, {AVX512, 8, 8}, {AVX512, 9, 16}, {AVX512, 16, 16},
	} {
		if got := passesOf[c.kernel].room(c.blocks); got != c.want {
			t.Errorf("%v, %d blocks: room for %d, want %d", c.kernel, c.blocks, got, c.want)
		}
	}
}

// TestSelfTestTakesEachSize holds that the lengths of the self test make each
// kernel run every size of pass that it has.
func TestSelfTestTakesEachSize(t *testing.T) {
	for _, k := range Kernels()[1:] {
		p := passesOf[k]
		untested := map[int]bool{}
		for _, blocks := range p.parts {
			untested[blocks] = true
		}
		for _, groups := range p.groups[1:] {
			untested[groups*p.group] = true
		}
		for _, run := range selfTestRuns {
			for left := run * BlockSize; p.size(left) > 0; left -= p.size(left) {
				delete(untested, p.room(p.size(left)/BlockSize))
			}
		}
		if len(untested) > 0 {
			t.Errorf("%v: no pass of so many blocks: %v", k, untested)
		}
	}
}

func spoilVectorKeys(v *vectorKeys, k Kernel) {
	switch k {
	case SSE2:
		spoil(&v.sse2)
	case AVX2:
		spoil(&v.avx2)
	case AVX512:
		spoil(&v.avx512)
	}
}

// TestSeriesInVectors: were tweaks and counters computed one by one, all would
// be right and slow.
func TestSeriesInVectors(t *testing.T) {
	for _, k := range Kernels() {
		c, dst := newTestCipher(t, k), make([]byte, 64+maxVector)
		want := k == AVX2 || k == AVX512
		if got := c.fillTweaks(dst, 64, new(block)); got != want {
			t.Errorf("%v computes tweaks in vectors: %v, want %v", k, got, want)
		}
		for _, first := range []uint64{0, 1 << 60, 1 << 63, 1<<64 - 100} {
			if got := c.fillCounters(dst, 64, counter{lo: first}); got != want {
				t.Errorf("%v computes counters from %#x in vectors: %v, want %v", k, first, got, want)
			}
		}
		if c.fillCounters(dst, 64, counter{lo: 1<<64 - 3}) {
			t.Errorf("%v counts over the end of the low half in vectors", k)
		}
	}
}
