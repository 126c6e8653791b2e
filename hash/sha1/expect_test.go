package sha1

import (
	"os"
	"slices"
	"testing"
)

// expectEnv is the environment variable that names the kernel that CPU and
// build should choose.
const expectEnv = "SERPCRYPT_EXPECT_SHA1_KERNEL"

// TestExpectedKernel holds that the kernel which expectEnv names is chosen, or,
// where that is not set, the last.
func TestExpectedKernel(t *testing.T) {
	chosen := Auto.Resolve()
	want, told := os.LookupEnv(expectEnv)
	if all := Kernels(); !told {
		want = all[len(all)-1].String()
	}
	if chosen.String() != want {
		t.Errorf("the kernel chosen is %v, want %s", chosen, want)
	}

	var lacking []Kernel
	for k := Auto + 1; int(k) < len(kernelNames); k++ {
		if !slices.Contains(Kernels(), k) {
			lacking = append(lacking, k)
		}
	}
	t.Logf("kernels of sha1 here: %v, not here: %v", Kernels(), lacking)
	var lackingChains []ChainKernel
	for k := AutoChains + 1; int(k) < len(chainKernelNames); k++ {
		if !slices.Contains(ChainKernels(), k) {
			lackingChains = append(lackingChains, k)
		}
	}
	t.Logf("kernels of sha1's chains here: %v, not here: %v", ChainKernels(), lackingChains)
}
