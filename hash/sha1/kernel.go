package sha1

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Kernel is an implementation of the compression.
type Kernel uint8

const (
	Auto    Kernel = iota // the fastest that CPU and build have
	Looped                // plain Go, the rounds in loops: to compare with
	Generic               // plain Go, the rounds written out
	Scalar                // amd64 and 386, general registers
	AVX2                  // amd64 with AVX2 and BMI2, vectors for the schedules
	SHANI                 // amd64 with SHA extensions
)

// kernelNames is indexed by Kernel.
var kernelNames = [...]string{Auto: "auto", Looped: "looped", Generic: "generic", Scalar: "scalar", AVX2: "avx2", SHANI: "shani"}

// KernelError tells that a kernel cannot be used.
type KernelError struct {
	Name  string
	Known bool // there is such a kernel, but not for this CPU or in this build
}

func (e *KernelError) Error() string {
	if !e.Known {
		return "sha1: unknown kernel " + strconv.Quote(e.Name)
	}
	return "sha1: this CPU or build cannot run kernel " + strconv.Quote(e.Name)
}

// String returns the name that ParseKernel takes.
func (k Kernel) String() string {
	if int(k) >= len(kernelNames) {
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
	k := Kernel(i)
	return k, k.check()
}

// Resolve returns the fastest kernel for Auto, and any other as it is.
func (k Kernel) Resolve() Kernel {
	if k == Auto {
		return kernels[len(kernels)-1]
	}
	return k
}

// check returns a *KernelError if CPU or build cannot run k.
func (k Kernel) check() error {
	if k == Auto || slices.Contains(kernels, k) {
		return nil
	}
	return &KernelError{Name: k.String(), Known: int(k) < len(kernelNames)}
}

// kernels holds what CPU and build can run.
var kernels = append([]Kernel{Looped, Generic}, assemblyKernels()...)

// standard is the kernel of New and Sum, resolved.
var standard atomic.Uint32

func init() { standard.Store(uint32(Auto.Resolve())) }

// SetDefault makes New and Sum use kernel k. Hashes that exist keep theirs. The
// error is a *KernelError if CPU or build cannot run it.
func SetDefault(k Kernel) error {
	if err := k.check(); err != nil {
		return err
	}
	standard.Store(uint32(k.Resolve()))
	return nil
}

// Default returns the kernel that New and Sum use.
func Default() Kernel { return Kernel(standard.Load()) }
