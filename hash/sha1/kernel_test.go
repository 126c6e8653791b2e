package sha1

import (
	"bytes"
	stdsha1 "crypto/sha1"
	"errors"
	"slices"
	"testing"
)

func TestKernels(t *testing.T) {
	got := Kernels()
	if len(got) < 2 || got[0] != Looped || got[1] != Generic || !slices.IsSorted(got) {
		t.Fatalf("got %v, want looped, generic and then what is faster", got)
	}
	if fastest := got[len(got)-1]; Auto.Resolve() != fastest || Default() != fastest {
		t.Errorf("Auto resolves to %v, and the default is %v, want %v", Auto.Resolve(), Default(), fastest)
	}
	got[0] = Auto
	if Kernels()[0] != Looped {
		t.Error("the result shares memory with the package")
	}
	for _, k := range Kernels() {
		if k.Resolve() != k {
			t.Errorf("%v resolves to %v", k, k.Resolve())
		}
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
	for _, name := range []string{"", "fast", "sha", "generic "} {
		var unknown *KernelError
		if _, err := ParseKernel(name); !errors.As(err, &unknown) || unknown.Known {
			t.Errorf("%q: got %v, want an unknown kernel", name, err)
		}
	}
}

// TestUnusableKernel pretends that CPU and build have only the portable code.
func TestUnusableKernel(t *testing.T) {
	defer func(all []Kernel) { kernels = all }(kernels)
	kernels = []Kernel{Looped, Generic}
	_, parseError := ParseKernel("shani")
	for name, err := range map[string]error{
		"ParseKernel": parseError,
		"SelfTest":    SelfTest(SHANI),
		"SetDefault":  SetDefault(SHANI),
		"NewKernel": func() (err error) {
			defer func() { err, _ = recover().(error) }()
			NewKernel(SHANI)
			return nil
		}(),
	} {
		var unusable *KernelError
		if !errors.As(err, &unusable) || !unusable.Known || unusable.Name != "shani" {
			t.Errorf("%s: got %v, want a known kernel that cannot be used", name, err)
		}
	}
	if Auto.Resolve() != Generic {
		t.Errorf("Auto resolves to %v", Auto.Resolve())
	}
}

func TestKernelNames(t *testing.T) {
	for k, want := range map[Kernel]string{Auto: "auto", Looped: "looped", Scalar: "scalar", SHANI: "shani", 77: "Kernel(77)"} {
		if got := k.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, e := range []struct {
		err  error
		want string
	}{
		{&KernelError{Name: "x"}, `sha1: unknown kernel "x"`},
		{&KernelError{Name: "shani", Known: true}, `sha1: this CPU or build cannot run kernel "shani"`},
		{SetDefault(77), `sha1: unknown kernel "Kernel(77)"`},
	} {
		if got := e.err.Error(); got != e.want {
			t.Errorf("got %q, want %q", got, e.want)
		}
	}
}

// TestWhichKernel changes the constant that a kernel has of its own, and so
// tells which one has worked. Generic has none: it is what is left.
func TestWhichKernel(t *testing.T) {
	defer SetDefault(Auto)
	message := randomBytes(t, 3000)
	want := stdsha1.Sum(message)
	digests := func(k Kernel) (sums [][]byte) {
		if err := SetDefault(k); err != nil {
			t.Fatal(err)
		}
		sum := Sum(message)
		sums = append(sums, sum[:])
		for _, h := range []*digest{New().(*digest), NewKernel(k).(*digest)} {
			h.Write(message[:10])
			h.Write(message[10:])
			sums = append(sums, h.Sum(nil))
			h.Reset()
			h.Write(message)
			sums = append(sums, h.Sum(nil))
			clone, err := h.Clone()
			if err != nil {
				t.Fatal(err)
			}
			sums = append(sums, clone.Sum(nil))
		}
		return sums
	}
	whole := message[:len(message)/BlockSize*BlockSize]
	wantHashValue := initial
	compress(Generic, &wantHashValue, &initial, whole, nil)
	for _, spoiled := range Kernels() {
		spoil(spoiled)
		for _, k := range Kernels() {
			var got [Size]byte
			if compress(k, &got, &initial, whole, nil); (got == wantHashValue) != (k != spoiled || spoiled == Generic) {
				t.Errorf("compress by %v: the constant of %v counts: %v", k, spoiled, got != wantHashValue)
			}
		}
		for _, k := range append(Kernels(), Auto) {
			for i, sum := range digests(k) {
				if right := bytes.Equal(sum, want[:]); right != (k.Resolve() != spoiled || spoiled == Generic) {
					t.Errorf("kernel %v, way %d: the constant of %v counts: %v", k, i, spoiled, !right)
				}
			}
			if err := SelfTest(k); (err == nil) != (k.Resolve() != spoiled || spoiled == Generic) {
				t.Errorf("self test of %v while the constant of %v is wrong: %v", k, spoiled, err)
			}
		}
		spoil(spoiled)
	}
}
