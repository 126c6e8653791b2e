package modes

import (
	"bytes"
	"crypto"
	"crypto/cipher"
	_ "crypto/sha1"
	_ "crypto/sha256"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"serpcrypt/cipher/serpent"
)

const stackSize = 32 << 10

// deepStack makes room on the goroutine's stack, so that it does not move
// before stackBelow looks at it, and clears it.
//
//go:noinline
func deepStack() {
	var room [2 * stackSize]byte
	wipe(&room)
}

// wipe is a function of its own, lest the compiler finds the room unused.
//
//go:noinline
func wipe(room *[2 * stackSize]byte) { clear(room[:]) }

// stackBelow copies what earlier calls of the caller left on the stack.
//
//go:noinline
//go:nocheckptr
func stackBelow(dst *[stackSize]byte) {
	var here byte
	for i := range dst {
		dst[len(dst)-1-i] = *(*byte)(unsafe.Add(unsafe.Pointer(&here), -1-i))
	}
}

// secrets are blocks that nothing may leave a copy of.
type secrets map[[16]byte]origin

type origin struct {
	what string
	n    int
}

func (o origin) String() string { return fmt.Sprintf("%s %d", o.what, o.n) }

// addBlocks adds each block of b.
func (s secrets) addBlocks(what string, b []byte) {
	for i := 0; i < len(b); i += 16 {
		s[[16]byte(b[i:])] = origin{what, i / 16}
	}
}

// addTweaks adds the tweaks of sectors, with the one behind, and the IVs that
// only who has the key may know. In ctr they are no secret, whatever they come
// from.
func (s secrets) addTweaks(r *reference, sectors, sectorSize int, first uint64) {
	for i := range sectors {
		iv := r.sectorIV(first + uint64(i*sectorSize/512))
		if r.iv == "essiv" && r.mode != "ctr" {
			s[[16]byte(iv)] = origin{"IV of sector", i}
		}
		for j, tweak := range r.tweaks(iv, sectorSize/16+1) {
			s[[16]byte(tweak)] = origin{"tweak of block", i*sectorSize/16 + j}
		}
	}
}

// addKeys adds the round keys in all their forms and the table of lrw.
func (s secrets) addKeys(sectors *Sectors) {
	k := sectors.keys
	s.addWords("byte of the keys", unsafe.Slice((*byte)(unsafe.Pointer(k)), unsafe.Sizeof(*k)))
	for what, memory := range blockMemory(sectors) {
		s.addWords("byte of the key for "+what, memory)
	}
}

// blockMemory returns what holds the round keys of ciphers other than Serpent.
func blockMemory(s *Sectors) map[string][]byte {
	memory := map[string][]byte{}
	for what, c := range map[string]cipher.Block{"data": s.blocks.data, "tweaks": s.blocks.tweak, "IVs": s.blocks.essiv} {
		if c != nil {
			v := reflect.ValueOf(c)
			memory[what] = unsafe.Slice((*byte)(v.UnsafePointer()), v.Elem().Type().Size())
		}
	}
	return memory
}

// addWords adds what lies anywhere in memory and has no zero words.
func (s secrets) addWords(what string, memory []byte) {
	nonzero := 0
	for i := 0; i+4 <= len(memory); i += 4 {
		if nonzero++; bytes.Equal(memory[i:i+4], make([]byte, 4)) {
			nonzero = 0
		}
		if nonzero >= 4 {
			s[[16]byte(memory[i-12:])] = origin{what, i - 12}
		}
	}
}

// in returns which of s are in memory.
func (s secrets) in(memory []byte) (found []origin) {
	for i := range len(memory) - 15 {
		if origin, ok := s[[16]byte(memory[i:])]; ok && !slices.Contains(found, origin) {
			found = append(found, origin)
		}
	}
	return found
}

// TestScratchWiped looks for secrets on the stack after runs of each class of
// length: a lone sector, few, a batch, more, and what fills no group of lanes.
func TestScratchWiped(t *testing.T) {
	// The garbage collector shrinks stacks, and below them lies other memory.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	left := new([stackSize]byte)
	for _, spec := range specsPerMode {
		key := longestKey(t, spec)
		ref := newReference(t, spec, key)
		for _, run := range []struct{ sectors, sectorSize int }{
			{1, 512}, {2, 512}, {3, 512}, {8, 512}, {9, 512}, {23, 512}, {192, 512}, {197, 512},
			{1, 4096}, {2, 4096}, {11, 4096},
		} {
			if raceEnabled && run.sectors > 3 {
				continue
			}
			const first = 3
			plaintext := randomBytes(11, run.sectors*run.sectorSize)
			ciphertext := bytes.Clone(plaintext)
			ref.encrypt(ciphertext, run.sectorSize, first)
			ofRun := secrets{}
			ofRun.addBlocks("block of plaintext", plaintext)
			ofRun.addTweaks(ref, run.sectors, run.sectorSize, first)
			for _, kernel := range kernelsOf(spec) {
				s := newSectors(t, spec, key, run.sectorSize, kernel)
				ofKeys := secrets{}
				ofKeys.addKeys(s)
				if strings.HasPrefix(spec, "serpent-") && len(ofKeys) < 33*8 {
					t.Fatalf("%s,%v: only %d secrets in the keys", spec, kernel, len(ofKeys))
				}
				for _, op := range []struct {
					name string
					do   func(dst, src []byte, first uint64)
					src  []byte
				}{
					{"enc", s.Encrypt, plaintext},
					{"dec", s.Decrypt, ciphertext},
					{"IVs", func(dst, _ []byte, first uint64) { s.makeIVs(dst[:run.sectors*ivSize], first, make([]byte, ivSize)) }, plaintext},
				} {
					data := bytes.Clone(op.src)
					deepStack()
					op.do(data, data, first)
					stackBelow(left)
					found := append(ofRun.in(left[:]), ofKeys.in(left[:])...)
					// The portable code has two blocks at a time in variables, which
					// the compiler may put into memory.
					allowed := 0
					if kernel == serpent.Generic || raceEnabled {
						allowed = 2
					}
					if len(found) > allowed {
						t.Errorf("%s,%v,%s of %d sectors of %d bytes: left %d secrets: %v", spec, kernel, op.name, run.sectors, run.sectorSize, len(found), found[:min(len(found), 5)])
					}
				}
			}
		}
	}
}

// TestNewLeavesNoKeys looks on the stack for what New has computed.
func TestNewLeavesNoKeys(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	left := new([stackSize]byte)
	for _, spec := range append(specsPerMode, "serpent-cbc-essiv:sha1", "serpent-cbc-essiv:sha224") {
		for _, kernel := range kernelsOf(spec) {
			key := longestKey(t, spec)
			deepStack()
			s, err := New(spec, key, 512, kernel)
			stackBelow(left)
			if err != nil {
				t.Fatal(err)
			}
			all := secrets{}
			all.addKeys(s)
			all.addWords("byte of the volume key", key)
			for _, hash := range []crypto.Hash{crypto.SHA1, crypto.SHA224, crypto.SHA256} {
				h := hash.New()
				h.Write(key)
				all.addWords("byte of the digest", h.Sum(nil))
			}
			if found := all.in(left[:]); len(found) > 0 {
				t.Errorf("%s,%v: left %d secrets: %v", spec, kernel, len(found), found[:min(len(found), 5)])
			}
			s.Wipe()
		}
	}
}
