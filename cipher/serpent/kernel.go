package serpent

import (
	"slices"
	"strconv"
	"strings"
)

// Kernel is an implementation of the cipher.
type Kernel uint8

const (
	Auto    Kernel = iota // the fastest that CPU and build have
	Generic               // plain Go, two blocks at a time
	SSE2                  // amd64, up to 12 blocks at a time
	AVX2                  // amd64, up to 24 blocks at a time
	AVX512                // amd64, up to 96 blocks at a time
)

// kernelNames is indexed by Kernel.
var kernelNames = [...]string{Auto: "auto", Generic: "generic", SSE2: "sse2", AVX2: "avx2", AVX512: "avx512"}

// KernelError tells that a kernel cannot be used.
type KernelError struct {
	Name  string
	Known bool // there is such a kernel, but not for this CPU or in this build
}

func (e *KernelError) Error() string {
	if !e.Known {
		return "serpent: unknown kernel " + strconv.Quote(e.Name)
	}
	return "serpent: this CPU or build cannot run kernel " + strconv.Quote(e.Name)
}

// String returns the name that ParseKernel takes.
func (k Kernel) String() string {
	if !k.known() {
		return "Kernel(" + strconv.Itoa(int(k)) + ")"
	}
	return kernelNames[k]
}

// Kernels returns the kernels that CPU and build can run, the slowest first.
func Kernels() []Kernel { return slices.Clone(kernels) }

// ParseKernel returns the kernel of that name, in any case. The error is a
// *KernelError if there is none or if CPU or build cannot run it.
func ParseKernel(name string) (Kernel, error) {
	i := slices.Index(kernelNames[:], strings.ToLower(name))
	if i < 0 {
		return Auto, &KernelError{Name: name}
	}
	if k := Kernel(i); k == Auto || k.available() {
		return k, nil
	}
	return Auto, &KernelError{Name: kernelNames[i], Known: true}
}

// Resolve returns the fastest kernel for Auto, and any other as it is.
func (k Kernel) Resolve() Kernel {
	if k == Auto {
		return kernels[len(kernels)-1]
	}
	return k
}

// kernels holds Generic and what else CPU and build can run.
var kernels = append([]Kernel{Generic}, vectorKernels()...)

func (k Kernel) known() bool     { return int(k) < len(kernelNames) }
func (k Kernel) available() bool { return slices.Contains(kernels, k) }
