package sha1

import "testing"

func TestChainCycles(t *testing.T) {
	for _, k := range allChainKernels() {
		one := k.Cycles(1)
		if one <= 0 || k.Cycles(0) != 0 {
			t.Errorf("%v: no chain costs %d, one costs %d", k, k.Cycles(0), one)
		}
		for n := 1; n < 3*maxPlanned; n++ {
			if less, more := k.Cycles(n), k.Cycles(n+1); less > more || more > less+one {
				t.Errorf("%v: %d chains cost %d, one more %d", k, n, less, more)
			}
			if best := AutoChains.Cycles(n); best > k.Cycles(n) {
				t.Errorf("%d chains: the best way costs %d, %v %d", n, best, k, k.Cycles(n))
			}
		}
	}
	if got := ChainKernel(99).Cycles(1); got != 0 {
		t.Errorf("a kernel that there is not costs %d", got)
	}
}
