package serpent

import "testing"

func TestSelfTest(t *testing.T) {
	for _, k := range Kernels() {
		if err := SelfTest(k); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkSelfTest(b *testing.B) {
	for b.Loop() {
		if err := SelfTest(Auto); err != nil {
			b.Fatal(err)
		}
	}
}
