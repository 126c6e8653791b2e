package sha1

import (
	"errors"
	"testing"
)

func TestDefaultChains(t *testing.T) {
	defer SetDefaultChains(AutoChains)
	if got := DefaultChains(); got != AutoChains {
		t.Errorf("at first it is %v", got)
	}
	for _, k := range allChainKernels() {
		if err := SetDefaultChains(k); err != nil || DefaultChains() != k {
			t.Errorf("%v is set: it is %v, %v", k, DefaultChains(), err)
		}
	}
	last := DefaultChains()
	var refused *KernelError
	if err := SetDefaultChains(77); !errors.As(err, &refused) || DefaultChains() != last {
		t.Errorf("none is set: it is %v, %v", DefaultChains(), err)
	}
}
