package sha1

import (
	"encoding/hex"
	"fmt"
)

// SelfTestChains checks kernel k, in much less than a millisecond: a known
// answer, and each number of chains that it takes at a time against the portable
// code. The error is a *KernelError if CPU or build lack the kernel.
func SelfTestChains(k ChainKernel) error {
	list, err := passesOf(k, chainKernels)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := p.selfTest(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) selfTest() error {
	const iterations = 2
	const known = "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957" // RFC 6070, section 2
	chains, want := make([]Chain, p.chains), make([]Chain, p.chains)
	for i := range chains {
		chains[i].Start([]byte("password"), []byte("salt"), uint32(i+1))
		want[i] = chains[i]
		want[i].iterateStream(Generic, iterations-1)
	}
	p.iterate(chains, iterations-1)
	if got := hex.EncodeToString(chains[0].T[:]); got != known {
		return fmt.Errorf("sha1: self test of SHA-1 kernel %v for chains, %d at a time: got %s, want %s", p.kernel, p.chains, got, known)
	}
	for i := range chains {
		if chains[i] != want[i] {
			return fmt.Errorf("sha1: self test of SHA-1 kernel %v for chains, %d at a time: chain %d goes wrong", p.kernel, p.chains, i)
		}
	}
	return nil
}
