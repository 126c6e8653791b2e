package sha1

import "math"

// pass is one way to take some chains through iterations.
type pass struct {
	shape
	// What an iteration of them all costs, however few of them there are, in
	// cycles of the core: on Intel's Sapphire Rapids and, by code of the same
	// form, on AMD's Zen 5. Other CPUs count as the one of the two that is of the
	// same maker. Only relations matter, and in one they differ: Intel's SHA
	// extensions work on one chain at a time. Not measured on Zen 5 are generic and
	// scalar, which count as on Intel's, and 4 and 8 chains by AVX-512, which count
	// as 16.
	intel, amd int
}

type shape struct {
	kernel ChainKernel
	chains int // at most
}

// passes are all that there are.
var passes = [...]pass{
	{shape{ChainsGeneric, 1}, 730, 730},
	{shape{ChainsScalar, 1}, 520, 520},
	{shape{ChainsSSE2, 4}, 985, 1185},
	{shape{ChainsSSE2, 8}, 1870, 1680},
	{shape{ChainsAVX2, 8}, 965, 1171},
	{shape{ChainsAVX2, 16}, 1865, 1630},
	{shape{ChainsAVX512, 4}, 470, 721},
	{shape{ChainsAVX512, 8}, 520, 721},
	{shape{ChainsAVX512, 16}, 780, 721},
	{shape{ChainsAVX512, 32}, 1550, 1025},
	{shape{ChainsSHANI, 1}, 280, 276},
	{shape{ChainsSHANI, 2}, 530, 296},
	{shape{ChainsSHANI, 3}, 790, 340},
	{shape{ChainsSHANI, 4}, 1035, 388},
}

func (p *pass) cycles() int {
	if amd {
		return p.amd
	}
	return p.intel
}

// callCycles bounds a call of assembly: 0.2 ms at 2 GHz.
const callCycles = 400_000

func (p *pass) iterationsPerCall() int { return callCycles / p.cycles() }

// passesOf returns those of kernel k, or of all usable kernels for AutoChains.
func passesOf(k ChainKernel, usable []ChainKernel) ([]pass, error) {
	if err := k.check(usable); err != nil {
		return nil, err
	}
	list := make([]pass, 0, len(passes))
	for _, p := range passes {
		if p.kernel == k || k == AutoChains && p.kernel.check(usable) == nil {
			list = append(list, p)
		}
	}
	return list, nil
}

// maxPlanned chains are divided at a time. More are not divided better.
const maxPlanned = 64

// plan divides chains, of which there are n up to maxPlanned, among passes so
// that all together cost the least. The last pass may have room for more.
func plan(passes []pass, n int) (chosen []pass) {
	var best [maxPlanned + 1]struct{ pass, cycles int } // of the last pass for so many chains
	for i := 1; i <= n; i++ {
		best[i].cycles = math.MaxInt
		for j := range passes {
			p := &passes[j]
			if cycles := p.cycles() + best[max(0, i-p.chains)].cycles; cycles < best[i].cycles {
				best[i].pass, best[i].cycles = j, cycles
			}
		}
	}
	for n > 0 {
		p := passes[best[n].pass]
		chosen = append(chosen, p)
		n -= p.chains
	}
	return chosen
}

// iterate does n iterations of chains, which are not more than p takes.
func (p *pass) iterate(chains []Chain, n int) {
	switch p.kernel {
	case ChainsGeneric:
		chains[0].iterateStream(Generic, n)
	case ChainsScalar:
		chains[0].iterateStream(Scalar, n)
	default:
		p.iterateAssembly(chains, n)
	}
}
