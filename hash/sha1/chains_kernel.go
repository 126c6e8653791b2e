package sha1

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// ChainKernel is an implementation of Iterate.
type ChainKernel uint8

const (
	AutoChains    ChainKernel = iota // for each number of chains what is the fastest
	ChainsGeneric                    // plain Go, one by one
	ChainsScalar                     // amd64 and 386, one by one
	ChainsSSE2                       // amd64, up to 8 at a time
	ChainsAVX2                       // amd64, up to 16 at a time
	ChainsAVX512                     // amd64, up to 32 at a time
	ChainsSHANI                      // amd64 with SHA extensions, up to 4 at a time
)

// chainKernelNames is indexed by ChainKernel.
var chainKernelNames = [...]string{
	AutoChains:    "auto",
	ChainsGeneric: "generic",
	ChainsScalar:  "scalar",
	ChainsSSE2:    "sse2",
	ChainsAVX2:    "avx2",
	ChainsAVX512:  "avx512",
	ChainsSHANI:   "shani",
}

// String returns the name that ParseChainKernel takes.
func (k ChainKernel) String() string {
	if int(k) >= len(chainKernelNames) {
		return "ChainKernel(" + strconv.Itoa(int(k)) + ")"
	}
	return chainKernelNames[k]
}

// ChainKernels returns the kernels that CPU and build can run.
func ChainKernels() []ChainKernel { return slices.Clone(chainKernels) }

// ParseChainKernel returns the kernel of that name, in any case. The error is a
// *KernelError if there is none or if CPU or build cannot run it.
func ParseChainKernel(name string) (ChainKernel, error) {
	i := slices.Index(chainKernelNames[:], strings.ToLower(name))
	if i < 0 {
		return AutoChains, &KernelError{Name: name}
	}
	k := ChainKernel(i)
	return k, k.check(chainKernels)
}

// check returns a *KernelError if k is not one of the usable kernels.
func (k ChainKernel) check(usable []ChainKernel) error {
	if k == AutoChains || slices.Contains(usable, k) {
		return nil
	}
	return &KernelError{Name: k.String(), Known: int(k) < len(chainKernelNames)}
}

// chainKernels holds what CPU and build can run.
var chainKernels = append([]ChainKernel{ChainsGeneric}, assemblyChainKernels()...)

// standardChains is what DefaultChains returns.
var standardChains atomic.Uint32

// SetDefaultChains chooses what DefaultChains returns. The error is a
// *KernelError if CPU or build cannot run it.
func SetDefaultChains(k ChainKernel) error {
	if err := k.check(chainKernels); err != nil {
		return err
	}
	standardChains.Store(uint32(k))
	return nil
}

// DefaultChains returns the kernel for those who have no wish: AutoChains, unless
// another was set.
func DefaultChains() ChainKernel { return ChainKernel(standardChains.Load()) }
