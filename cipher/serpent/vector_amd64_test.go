//go:build !purego

package serpent

import (
	"slices"
	"testing"

	"github.com/klauspost/cpuid/v2"
)

func TestVectorKernelsOfCPU(t *testing.T) {
	for _, c := range []struct {
		name     string
		features []cpuid.FeatureID
		want     []Kernel
	}{
		{"nothing", nil, nil},
		{"SSE only", []cpuid.FeatureID{cpuid.SSE}, nil},
		{"SSE2", []cpuid.FeatureID{cpuid.SSE, cpuid.SSE2}, []Kernel{SSE2}},
		{"AVX but not AVX2", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX}, []Kernel{SSE2}},
		{"Haswell", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX, cpuid.AVX2}, []Kernel{SSE2, AVX2}},
		{"Knights Landing", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512CD}, []Kernel{SSE2, AVX2}},
		{"Skylake-X", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512CD, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL}, []Kernel{SSE2, AVX2, AVX512}},
		{"AVX-512 without AVX2, as nothing is", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL}, []Kernel{SSE2, AVX512}},
	} {
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
		{AVX512, 96, []int{96}}, {AVX512, 128, []int{64, 64}}, {AVX512, 256, []int{96, 96, 64}},
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
