//go:build !purego

package sha1

import (
	"slices"
	"testing"

	"github.com/klauspost/cpuid/v2"
)

func TestKernelsOfCPU(t *testing.T) {
	for _, c := range []struct {
		name     string
		features []cpuid.FeatureID
		want     []Kernel
	}{
		{"nothing", nil, nil},
		{"SSE2", []cpuid.FeatureID{cpuid.SSE2}, []Kernel{Scalar}},
		{"Haswell", []cpuid.FeatureID{cpuid.SSE2, cpuid.SSSE3, cpuid.SSE4, cpuid.AVX, cpuid.AVX2}, []Kernel{Scalar}},
		{"without SSSE3", []cpuid.FeatureID{cpuid.SSE2, cpuid.SHA}, []Kernel{Scalar}},
		{"Goldmont", []cpuid.FeatureID{cpuid.SSE2, cpuid.SSSE3, cpuid.SHA}, []Kernel{Scalar, SHANI}},
	} {
		var cpu cpuid.CPUInfo
		cpu.Enable(c.features...)
		if got := usable(&cpu); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if !slices.Contains(Kernels(), Scalar) {
		t.Error("this amd64 CPU has no SSE2, which all have")
	}
}

// spoil changes the constant that only kernel k reads, and a second time
// restores it.
func spoil(k Kernel) {
	switch k {
	case Looped:
		loopedConstants[3] ^= 1
	case Scalar:
		scalarFirstConstant ^= 1
	case SHANI:
		shaniConstants[0] ^= 1
	}
}
