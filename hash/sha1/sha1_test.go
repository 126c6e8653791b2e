package sha1

import (
	"bytes"
	stdsha1 "crypto/sha1"
	"encoding"
	"encoding/binary"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestSelfTest(t *testing.T) {
	for _, k := range append(Kernels(), Auto) {
		if err := SelfTest(k); err != nil {
			t.Error(err)
		}
	}
}

// NIST, "Examples with intermediate values" for FIPS 180-4 (SHA1.pdf), and the
// longer examples of FIPS 180-2, appendix A, and RFC 6234, section 8.4.
func TestKnownAnswers(t *testing.T) {
	for _, v := range []struct{ message, sum string }{
		{"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
		{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu", "a49b2446a02c645bf419f995b67091253a04a259"},
		{strings.Repeat("01234567", 80), "dea356a2cddd90c7a7ecedc5ebb563934f460452"},
		{strings.Repeat("a", 1000000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f"},
	} {
		for _, k := range Kernels() {
			checkDigest(t, k, fmt.Sprintf("len=%d", len(v.message)), []byte(v.message), v.sum)
		}
	}
}

// randomBytes returns n bytes from a seed that the log shows.
func randomBytes(t testing.TB, n int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], rand.Uint64())
	t.Logf("seed %x", seed)
	p := make([]byte, n)
	rand.NewChaCha8(seed).Read(p)
	return p
}

func TestEveryLength(t *testing.T) {
	p := randomBytes(t, 1024)
	for n := range len(p) + 1 {
		want := stdsha1.Sum(p[:n])
		if got := Sum(p[:n]); got != want {
			t.Fatalf("len=%d: Sum is %x, want %x", n, got, want)
		}
		for _, k := range Kernels() {
			var got [Size]byte
			if sumKernel(k, &got, p[:n]); got != want {
				t.Fatalf("%v, len=%d: sum is %x, want %x", k, n, got, want)
			}
		}
	}
}

// Every message length to 1024 is written in two parts, split everywhere by the
// fastest kernel and at some places by the others, and in equal parts of every
// step that matters to a block.
func TestEverySplit(t *testing.T) {
	p := randomBytes(t, 1024)
	for _, k := range Kernels() {
		step := 1
		if k != Auto.Resolve() {
			step = 7
		}
		h := NewKernel(k)
		for n := range len(p) + 1 {
			want := stdsha1.Sum(p[:n])
			for split := n % step; split <= n; split += step {
				h.Reset()
				h.Write(p[:split])
				h.Write(p[split:n])
				var got [Size]byte
				h.Sum(got[:0])
				if got != want {
					t.Fatalf("%v, len=%d,split=%d: got %x, want %x", k, n, split, got, want)
				}
			}
		}
		want := stdsha1.Sum(p)
		for step := 1; step <= 200; step++ {
			h.Reset()
			for rest := p; len(rest) > 0; rest = rest[min(step, len(rest)):] {
				if n, err := h.Write(rest[:min(step, len(rest))]); n != min(step, len(rest)) || err != nil {
					t.Fatalf("%v, step=%d: Write returned %d, %v", k, step, n, err)
				}
				h.Sum(nil) // must not disturb what follows
			}
			if got := h.Sum([]byte("before")); string(got) != "before"+string(want[:]) {
				t.Fatalf("%v, step=%d: got %x, want %x", k, step, got, want)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	if h := New(); h.Size() != 20 || h.BlockSize() != 64 {
		t.Errorf("size %d, block size %d", h.Size(), h.BlockSize())
	}
}

func marshal(t *testing.T, h hash.Hash) []byte {
	t.Helper()
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestMarshalAtEverySplit(t *testing.T) {
	p := randomBytes(t, 300)
	want := stdsha1.Sum(p)
	restored := New()
	for split := range len(p) + 1 {
		h := New()
		h.Write(p[:split])
		state := marshal(t, h)
		appended, err := h.(encoding.BinaryAppender).AppendBinary([]byte("before"))
		if err != nil || string(appended) != "before"+string(state) {
			t.Fatalf("split=%d: AppendBinary gives %x, %v; MarshalBinary %x", split, appended, err, state)
		}
		restored.Write(p[:split/2]) // what it held before must not show
		if err := restored.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
			t.Fatalf("split=%d: %v", split, err)
		}
		if again := marshal(t, restored); !bytes.Equal(again, state) {
			t.Fatalf("split=%d: marshalled %x, and after unmarshalling %x", split, state, again)
		}
		clone, err := h.(hash.Cloner).Clone()
		if err != nil {
			t.Fatal(err)
		}
		for name, h := range map[string]hash.Hash{"original": h, "restored": restored, "clone": clone} {
			h.Write(p[split:])
			if got := h.Sum(nil); !bytes.Equal(got, want[:]) {
				t.Fatalf("split=%d: %s gives %x, want %x", split, name, got, want)
			}
		}
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	h := New()
	h.Write([]byte("twenty bytes of text"))
	good := marshal(t, h)
	change := func(offset int, b ...byte) []byte {
		bad := bytes.Clone(good)
		copy(bad[offset:], b)
		return bad
	}
	for name, state := range map[string][]byte{
		"nothing":              nil,
		"magic only":           []byte(magic),
		"cut before the tail":  good[:tailOffset-1],
		"cut in the tail":      good[:len(good)-1],
		"one byte more":        append(bytes.Clone(good), 0),
		"a block more":         append(bytes.Clone(good), make([]byte, BlockSize)...),
		"other magic":          change(0, 'S'),
		"other version":        change(3, 2),
		"count of one more":    change(bytesOffset+7, 21),
		"count of 2^61 and 20": change(bytesOffset, 0x20),
		"count of 2^61":        change(bytesOffset, 0x20, 0, 0, 0, 0, 0, 0, 0)[:tailOffset],
		"count of crypto/sha1": func() []byte {
			std, _ := stdsha1.New().(encoding.BinaryMarshaler).MarshalBinary()
			return std
		}(),
	} {
		if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err == nil {
			t.Errorf("%s: no error", name)
		} else if !strings.HasPrefix(err.Error(), "sha1: ") {
			t.Errorf("%s: error is %q", name, err)
		}
		if now := marshal(t, h); !bytes.Equal(now, good) {
			t.Fatalf("%s: the hash has changed to %x", name, now)
		}
	}
}

// The count of bits passes 2^32 and more where nobody wants to hash so much.
// Both packages are put there by their marshalled states.
func TestLengthCounter(t *testing.T) {
	p := randomBytes(t, 200)
	for _, start := range []uint64{1<<29 - 64, 1<<32 - 128, 1<<35 - 64, 1<<60 + 64, maxBytes - 256} {
		h := New()
		state := marshal(t, h)
		binary.BigEndian.PutUint64(state[bytesOffset:], start)
		if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
			t.Fatalf("start=%#x: %v", start, err)
		}
		std := stdsha1.New()
		state, err := std.(encoding.BinaryMarshaler).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		binary.BigEndian.PutUint64(state[len(state)-8:], start)
		if err := std.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
			t.Fatalf("start=%#x: %v", start, err)
		}
		for i := range p {
			h.Write(p[i : i+1])
			std.Write(p[i : i+1])
			if got, want := h.Sum(nil), std.Sum(nil); !bytes.Equal(got, want) {
				t.Fatalf("start=%#x, %d bytes on: got %x, want %x", start, i+1, got, want)
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	p := make([]byte, 200)
	for _, k := range Kernels() {
		testNoAllocations(t, k, p)
	}
}

func testNoAllocations(t *testing.T, k Kernel, p []byte) {
	h := NewKernel(k)
	state := marshal(t, h)
	unmarshaler := h.(encoding.BinaryUnmarshaler)
	appender := h.(encoding.BinaryAppender)
	out := make([]byte, 0, 256)
	for name, f := range map[string]func(){
		"Sum":             func() { sink = Sum(p) },
		"sum":             func() { sumKernel(k, &sink, p) },
		"Write and Sum":   func() { h.Write(p); h.Sum(out) },
		"Reset":           func() { h.Reset() },
		"AppendBinary":    func() { appender.AppendBinary(out) },
		"UnmarshalBinary": func() { unmarshaler.UnmarshalBinary(state) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%v: %s allocates %v times", k, name, n)
		}
	}
}

var sink [Size]byte

func TestGeneratedCodeIsCurrent(t *testing.T) {
	generator, err := filepath.Abs("gen_generic.go")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", generator)
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(cmd.Dir, "sha1_generic.go"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("sha1_generic.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("sha1_generic.go differs from what gen_generic.go writes: run go generate")
	}
}
