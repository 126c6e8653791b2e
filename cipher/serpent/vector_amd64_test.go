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

// TestCallLen looks at how runs of blocks are divided into calls.
func TestCallLen(t *testing.T) {
	for n, want := range map[int][]int{
		0: nil, 3: nil, 4: {4}, 7: {4}, 8: {8}, 11: {8}, 12: {8, 4}, 15: {8, 4}, 16: {16}, 19: {16},
		20: {16, 4}, 28: {16, 8, 4}, 32: {16, 16}, 62: {16, 16, 16, 8, 4},
	} {
		var got []int
		for left := n * BlockSize; callLen(left) > 0; {
			got = append(got, callLen(left)/BlockSize)
			left -= callLen(left)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d blocks: got calls of %v, want %v", n, got, want)
		}
	}
}
