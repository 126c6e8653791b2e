//go:build !purego

package sha1

import (
	"slices"
	"testing"

	"github.com/klauspost/cpuid/v2"

	"serpcrypt/internal/skip"
)

func TestKernelsOfCPU(t *testing.T) {
	for _, c := range []struct {
		name     string
		features []cpuid.FeatureID
		want     []Kernel
	}{
		{"nothing", nil, nil},
		{"SSE2", []cpuid.FeatureID{cpuid.SSE2}, []Kernel{Scalar}},
		{"Haswell", []cpuid.FeatureID{cpuid.SSE2, cpuid.SSSE3, cpuid.SSE4, cpuid.AVX, cpuid.AVX2, cpuid.BMI1, cpuid.BMI2}, []Kernel{Scalar, AVX2}},
		{"without BMI2", []cpuid.FeatureID{cpuid.SSE2, cpuid.AVX, cpuid.AVX2}, []Kernel{Scalar}},
		{"without SSSE3", []cpuid.FeatureID{cpuid.SSE2, cpuid.SHA}, []Kernel{Scalar}},
		{"Zen", []cpuid.FeatureID{cpuid.SSE2, cpuid.SSSE3, cpuid.AVX2, cpuid.BMI2, cpuid.SHA}, []Kernel{Scalar, AVX2, SHANI}},
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
	case AVX2:
		avx2Constants.first ^= 1
		avx2Constants.forVectors[8] ^= 1
	case SHANI:
		shaniConstants[0] ^= 1
	}
}

func needKernel(t *testing.T, k Kernel) {
	t.Helper()
	if !slices.Contains(Kernels(), k) {
		skip.CPU(t, "this CPU cannot run kernel "+k.String())
	}
}

func TestAVX2WipesWords(t *testing.T) {
	needKernel(t, AVX2)
	words := [320]uint32{5: 1}
	message := randomBytes(t, 3*2*BlockSize)
	got, want := initial, initial
	compressAVX2(&got, &message[0], 3, &avx2Constants.forVectors, &words)
	if words != [320]uint32{} {
		t.Errorf("words of the schedule are left: %#x", words)
	}
	if compress(Generic, &want, &want, message, nil); got != want {
		t.Errorf("hash value is %x, want %x", got, want)
	}
}

// TestPairs: long messages go through compressAVX2, and only these.
func TestPairs(t *testing.T) {
	needKernel(t, AVX2)
	message := randomBytes(t, minPairs*2*BlockSize)
	wrong := func(p []byte) bool {
		got, want := initial, initial
		compress(AVX2, &got, &got, p, nil)
		compress(Generic, &want, &want, p, nil)
		return got != want
	}
	avx2Constants.forVectors[8] ^= 1
	if !wrong(message) || wrong(message[2*BlockSize:]) {
		t.Error("kernel avx2 does not take pairs of blocks from minPairs on")
	}
	avx2Constants.forVectors[8] ^= 1
	if wrong(message) {
		t.Error("kernel avx2 computes another hash value")
	}
}

// TestSHANIPads: kernel shani does not wait for padding in memory.
func TestSHANIPads(t *testing.T) {
	needKernel(t, SHANI)
	message := randomBytes(t, 100)
	var got, want [Size]byte
	sumKernel(Generic, &want, message)
	mark := &shaniConstants[16+BlockSize]
	*mark ^= 1
	if sumKernel(SHANI, &got, message); got == want {
		t.Error("kernel shani does not read the mark behind the message")
	}
	*mark ^= 1
	if sumKernel(SHANI, &got, message); got != want {
		t.Errorf("got %x, want %x", got, want)
	}
}
