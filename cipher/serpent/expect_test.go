package serpent

import (
	"os"
	"slices"
	"testing"
)

// expectEnv is the environment variable that names the kernel that CPU and
// build should choose.
const expectEnv = "SERPCRYPT_EXPECT_KERNEL"

// TestExpectedKernel holds that the widest kernel is chosen and that there are
// all that are narrower. If expectEnv is set, it names the widest.
func TestExpectedKernel(t *testing.T) {
	chosen := Auto.Resolve()
	if want, told := os.LookupEnv(expectEnv); told && chosen.String() != want {
		t.Errorf("the kernel chosen is %v, want %s", chosen, want)
	}
	var want, lacking []Kernel
	for k := Generic; k.known(); k++ {
		if k <= chosen {
			want = append(want, k)
		} else {
			lacking = append(lacking, k)
		}
	}
	if got := Kernels(); !slices.Equal(got, want) {
		t.Errorf("the kernels are %v, want %v", got, want)
	}
	t.Logf("kernels of serpent here: %v, not here: %v", want, lacking)
}
