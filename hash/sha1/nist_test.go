package sha1

import (
	"bufio"
	"embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// The response files of NIST's Secure Hash Algorithm Validation System for
// SHA-1 in bytes (SHAVS, 2014, 6.2).
//
//go:embed testdata/SHA1*.rsp
var nistFiles embed.FS

// nistVectors returns the values of each vector in the file by their names, the
// last of which is MD.
func nistVectors(t *testing.T, name string) (vectors []map[string]string) {
	t.Helper()
	file, err := nistFiles.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	vector := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		key, value, found := strings.Cut(lines.Text(), " = ")
		if !found {
			continue
		}
		vector[key] = value
		if key == "MD" {
			vectors = append(vectors, vector)
			vector = map[string]string{}
		}
	}
	if lines.Err() != nil || len(vectors) == 0 {
		t.Fatalf("%s: %d vectors, %v", name, len(vectors), lines.Err())
	}
	return vectors
}

func fromHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
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

func TestNISTMessages(t *testing.T) {
	for _, file := range []string{"SHA1ShortMsg.rsp", "SHA1LongMsg.rsp"} {
		for _, v := range nistVectors(t, file) {
			bits, err := strconv.Atoi(v["Len"])
			if err != nil {
				t.Fatal(err)
			}
			message := fromHex(t, v["Msg"])[:bits/8] // that of no bits is written as 00
			for _, k := range Kernels() {
				checkDigest(t, k, fmt.Sprintf("%s, len=%d", file, len(message)), message, v["MD"])
			}
		}
	}
}

// Each message of the Monte Carlo kind is the last three digests (SHAVS, figure
// 2).
func TestNISTMonteCarlo(t *testing.T) {
	vectors := nistVectors(t, "SHA1Monte.rsp")
	for _, k := range Kernels() {
		last := [Size]byte(fromHex(t, vectors[0]["Seed"]))
		for _, v := range vectors {
			message := strings.Repeat(string(last[:]), 3)
			for range 1000 {
				sumKernel(k, &last, []byte(message))
				message = message[Size:] + string(last[:])
			}
			if got := hex.EncodeToString(last[:]); got != v["MD"] {
				t.Fatalf("%v, count %s: got %s, want %s", k, v["COUNT"], got, v["MD"])
			}
		}
	}
}
