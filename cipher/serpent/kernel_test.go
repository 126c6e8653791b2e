package serpent

import (
	"errors"
	"slices"
	"testing"
)

func TestKernels(t *testing.T) {
	got := Kernels()
	if len(got) == 0 || got[0] != Generic || !slices.IsSorted(got) {
		t.Fatalf("got %v, want generic and then what is faster", got)
	}
	if fastest := got[len(got)-1]; Auto.Resolve() != fastest {
		t.Errorf("Auto resolves to %v, want %v", Auto.Resolve(), fastest)
	}
	got[0] = Auto
	if Kernels()[0] != Generic {
		t.Error("the result shares memory with the package")
	}
	for _, k := range Kernels() {
		if k.Resolve() != k {
			t.Errorf("%v resolves to %v", k, k.Resolve())
		}
		if c := newTestCipher(t, k); c.Kernel() != k {
			t.Errorf("a cipher with kernel %v says %v", k, c.Kernel())
		}
	}
	if c := newTestCipher(t, Auto); c.Kernel() != Auto.Resolve() {
		t.Errorf("a cipher with kernel auto says %v, want %v", c.Kernel(), Auto.Resolve())
	}
}

func TestParseKernel(t *testing.T) {
	for name, want := range map[string]Kernel{"auto": Auto, "generic": Generic, "Generic": Generic} {
		if got, err := ParseKernel(name); got != want || err != nil {
			t.Errorf("%q: got %v, %v", name, got, err)
		}
	}
	for _, k := range Kernels() {
		if got, err := ParseKernel(k.String()); got != k || err != nil {
			t.Errorf("%q: got %v, %v", k.String(), got, err)
		}
	}
	for _, name := range []string{"", "fast", "sse", "generic "} {
		var unknown *KernelError
		if _, err := ParseKernel(name); !errors.As(err, &unknown) || unknown.Known {
			t.Errorf("%q: got %v, want an unknown kernel", name, err)
		}
	}
}

// TestUnusableKernel pretends that CPU and build have only the portable code.
func TestUnusableKernel(t *testing.T) {
	defer func(all []Kernel) { kernels = all }(kernels)
	kernels = []Kernel{Generic}
	var unusable *KernelError
	if _, err := ParseKernel("sse2"); !errors.As(err, &unusable) || !unusable.Known {
		t.Errorf("ParseKernel: got %v, want a known kernel that cannot be used", err)
	}
	if err := new(Cipher).Init(testKey, SSE2); !errors.As(err, &unusable) || !unusable.Known {
		t.Errorf("Init: got %v, want a known kernel that cannot be used", err)
	}
	if Auto.Resolve() != Generic {
		t.Errorf("Auto resolves to %v", Auto.Resolve())
	}
}

func TestKernelNames(t *testing.T) {
	for k, want := range map[Kernel]string{Auto: "auto", Generic: "generic", SSE2: "sse2", 77: "Kernel(77)"} {
		if got := k.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, e := range []struct {
		err  KernelError
		want string
	}{
		{KernelError{Name: "x"}, `serpent: unknown kernel "x"`},
		{KernelError{Name: "sse2", Known: true}, `serpent: this CPU or build cannot run kernel "sse2"`},
	} {
		if got := e.err.Error(); got != e.want {
			t.Errorf("got %q, want %q", got, e.want)
		}
	}
}
