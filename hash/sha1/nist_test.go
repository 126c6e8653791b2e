package sha1

import (
	"crypto/sha3"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/nist.txt
var nistText string

// nistVectors calls f with each line of the file that is of the kind.
func nistVectors(t *testing.T, kind string, f func(input, digest string)) {
	t.Helper()
	n := 0
	for line := range strings.Lines(nistText) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == kind {
			n++
			f(words[1], words[2])
		}
	}
	if n == 0 {
		t.Fatalf("no vectors of kind %q", kind)
	}
}

// checkDigest hashes p at once, and in two parts.
func checkDigest(t *testing.T, k Kernel, what string, p []byte, want string) {
	t.Helper()
	var sum [Size]byte
	sumKernel(k, &sum, p)
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("%v, %s: got %s, want %s", k, what, got, want)
	}
	h := NewKernel(k)
	h.Write(p[:len(p)/3])
	h.Write(p[len(p)/3:])
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("%v, %s in two parts: got %s, want %s", k, what, got, want)
	}
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNISTMessages(t *testing.T) {
	nistVectors(t, "given", func(input, digest string) {
		message, err := hex.DecodeString(input)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range Kernels() {
			checkDigest(t, k, input, message, digest)
		}
	})
	nistVectors(t, "shake", func(input, digest string) {
		message := make([]byte, number(t, input))
		sha3.NewSHAKE128().Read(message)
		for _, k := range Kernels() {
			checkDigest(t, k, fmt.Sprintf("len=%s", input), message, digest)
		}
	})
}

// Each message of the Monte Carlo kind is the last three digests (SHAVS, figure
// 2).
func TestNISTMonteCarlo(t *testing.T) {
	const seed = "\xd0\x56\x9c\xb3\x66\x5a\x8a\x43\xeb\x6e\xa2\x3d\x75\xa3\xc4\xd2\x05\x4a\x0d\x7d"
	want, counts := map[int]string{}, 0
	nistVectors(t, "monte", func(input, digest string) {
		want[number(t, input)] = digest
		counts = max(counts, number(t, input))
	})
	for _, k := range Kernels() {
		last := [Size]byte([]byte(seed))
		for count := 1; count <= counts; count++ {
			message := strings.Repeat(string(last[:]), 3)
			for range 1000 {
				sumKernel(k, &last, []byte(message))
				message = message[Size:] + string(last[:])
			}
			if digest, ok := want[count]; ok && hex.EncodeToString(last[:]) != digest {
				t.Errorf("%v, count %d: got %x, want %s", k, count, last, digest)
			}
		}
	}
}
