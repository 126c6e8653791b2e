package sha1

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"unsafe"

	"serpcrypt/internal/guarded"
)

// formsOf returns what of chains must not be left anywhere, in the forms that
// kernel k may have: each digest as bytes and as words, each word of several
// chains side by side, and in the order of SHA extensions.
func formsOf(k ChainKernel, chains []Chain) map[string][]byte {
	forms := map[string][]byte{}
	for part, of := range map[string]func(c *Chain) *[Size]byte{
		"Inner": func(c *Chain) *[Size]byte { return &c.inner },
		"Outer": func(c *Chain) *[Size]byte { return &c.outer },
		"U":     func(c *Chain) *[Size]byte { return &c.u },
		"T":     func(c *Chain) *[Size]byte { return &c.T },
	} {
		var rows [Size / 4][]byte
		for i := range chains {
			digest := of(&chains[i])[:]
			for word := range rows {
				rows[word] = binary.NativeEndian.AppendUint32(rows[word], binary.BigEndian.Uint32(digest[4*word:]))
			}
			forms[fmt.Sprintf("%s of chain %d", part, i)] = bytes.Clone(digest)
			forms[fmt.Sprintf("words of %s of chain %d", part, i)] = swapWords(digest)
			if k == ChainsSHANI {
				backwards := bytes.Clone(digest)
				slices.Reverse(backwards)
				forms[fmt.Sprintf("%s of chain %d, backwards", part, i)] = backwards
			}
		}
		for word := range rows {
			forms[fmt.Sprintf("word %d of %s of all chains", word, part)] = rows[word]
		}
	}
	return forms
}

// TestChainsLeaveNothing looks for the password and for what chains consist of
// on the stack. Now and then the runtime stops a goroutine in the midst of its work
// and saves its registers there, but hardly three times in a row.
func TestChainsLeaveNothing(t *testing.T) {
	// The garbage collector shrinks stacks, and below them lies other memory.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	r := newRandom(t)
	for _, k := range allChainKernels() {
		for _, n := range []int{1, 2, 3, 4, 7, 16, 31, 40} {
			var found string
			for range 3 {
				if found = leftOfChains(t, r, k, n); found == "" {
					break
				}
			}
			if found != "" {
				t.Fatalf("%v, %d chains: %s is on the stack", k, n, found)
			}
		}
	}
}

// leftOfChains starts and iterates chains, and returns what of them is on the
// stack afterwards, or "".
func leftOfChains(t *testing.T, r *rand.Rand, k ChainKernel, n int) (found string) {
	t.Helper()
	left := new([stackSize]byte)
	find := func(when string, secrets map[string][]byte) {
		for what, secret := range secrets {
			for i := 0; i+16 <= len(secret); i += 4 {
				if bytes.Contains(left[:], secret[i:i+16]) {
					found = fmt.Sprintf("%s, byte %d of %s", when, i, what)
				}
			}
		}
	}
	chains := make([]Chain, n)
	for i := range chains {
		password := draw(r, 60)
		deepStack()
		chains[i].Start(password, password[:20], uint32(i))
		stackBelow(left)
		find("at the start", map[string][]byte{"the password": password})
		find("at the start", formsOf(ChainsGeneric, chains[i:i+1]))
	}
	before := formsOf(k, chains)
	deepStack()
	err := Iterate(k, chains, 3)
	stackBelow(left)
	if err != nil {
		t.Fatal(err)
	}
	find("before", before)
	find("after", formsOf(k, chains))
	return found
}

// TestChainsAtGuardPages puts chains at both ends of memory.
func TestChainsAtGuardPages(t *testing.T) {
	const most = 40
	r := newRandom(t)
	chainBytes := int(unsafe.Sizeof(Chain{}))
	memory := guarded.Memory(t, most*chainBytes)
	for n := 1; n <= most; n++ {
		start, want := startedChains(r, n)
		wanted := want(3)
		for _, offset := range []int{0, len(memory) - n*chainBytes} {
			chains := unsafe.Slice((*Chain)(unsafe.Pointer(&memory[offset])), n)
			for _, k := range allChainKernels() {
				copy(chains, start)
				if iterate(t, k, chains, 2); !bytes.Equal(blocksOf(chains), wanted) {
					t.Errorf("%v, %d chains at %d: wrong blocks", k, n, offset)
				}
			}
		}
	}
}
