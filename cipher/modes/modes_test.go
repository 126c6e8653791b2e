package modes

import (
	"bufio"
	"bytes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/xts"

	"serpcrypt/cipher/serpent"
)

// TestDMCrypt compares with what Linux made of the same sectors.
func TestDMCrypt(t *testing.T) {
	f, err := os.Open("testdata/dmcrypt.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plaintext := make([]byte, 16384)
	for i := range len(plaintext) / 8 {
		binary.LittleEndian.PutUint64(plaintext[8*i:], uint64(i))
	}
	cases := 0
	specs := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		var spec, want string
		var keySize, sectorSize int
		var first uint64
		if _, err := fmt.Sscan(line, &spec, &keySize, &sectorSize, &first, &want); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		key := make([]byte, keySize)
		for i := range key {
			key[i] = byte(7*i + 1)
		}
		for _, kernel := range kernelsOf(spec) {
			s := newSectors(t, spec, key, sectorSize, kernel)
			data := make([]byte, len(plaintext))
			s.Encrypt(data, plaintext, first)
			if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != want {
				t.Errorf("%s, %v: encrypted to SHA-256 %x", line, kernel, got)
			}
			s.Decrypt(data, data, first)
			checkEqual(t, fmt.Sprintf("%s, %v: decrypted", line, kernel), data, plaintext)
		}
		cases++
		specs[spec] = true
	}
	for _, spec := range allSpecs() {
		if !specs[spec] {
			t.Errorf("no case for %s", spec)
		}
	}
	if cases < 300 {
		t.Errorf("%d cases, want 300 or more", cases)
	}
}

// TestAgainstLibraries compares with modes that are not ours.
func TestAgainstLibraries(t *testing.T) {
	const sectors = 70
	iv := func(n uint64) []byte { return append(binary.LittleEndian.AppendUint64(nil, n), make([]byte, 8)...) }
	for _, spec := range []string{
		"serpent-cbc-plain64", "serpent-ctr-plain64", "serpent-xts-plain64",
		"aes-cbc-plain64", "aes-ctr-plain64", "aes-xts-plain64",
	} {
		for _, keySize := range keySizesOf(t, spec) {
			key := randomBytes(1, keySize)
			var peer func(dst, src []byte, n uint64)
			if strings.Contains(spec, "xts") {
				c, err := xts.NewCipher(newBlock(spec), key)
				if err != nil {
					t.Fatal(err)
				}
				peer = c.Encrypt
			} else {
				c, err := newBlock(spec)(key)
				if err != nil {
					t.Fatal(err)
				}
				peer = func(dst, src []byte, n uint64) {
					if strings.Contains(spec, "cbc") {
						cipher.NewCBCEncrypter(c, iv(n)).CryptBlocks(dst, src)
					} else {
						cipher.NewCTR(c, iv(n)).XORKeyStream(dst, src)
					}
				}
			}
			for _, sectorSize := range []int{512, 1024, 2048, 4096} {
				plaintext := randomBytes(2, sectors*sectorSize)
				for _, first := range []uint64{0, 1<<32 - 8, 1<<64 - 16} {
					want := make([]byte, len(plaintext))
					for i := range sectors {
						at := i * sectorSize
						peer(want[at:at+sectorSize], plaintext[at:at+sectorSize], first+uint64(at/512))
					}
					for _, kernel := range kernelsOf(spec) {
						s := newSectors(t, spec, key, sectorSize, kernel)
						what := fmt.Sprintf("%s,key=%d,sector=%d,first=%d,%v", spec, keySize, sectorSize, first, kernel)
						got := make([]byte, len(plaintext))
						s.Encrypt(got, plaintext, first)
						checkEqual(t, what+",enc", got, want)
						s.Decrypt(got, got, first)
						checkEqual(t, what+",dec", got, plaintext)
					}
				}
			}
		}
	}
}

// TestAgainstReference runs through all that New accepts.
func TestAgainstReference(t *testing.T) {
	firsts := []uint64{0, 1, 1<<32 - 1, 1 << 32, 1<<59 - 1, 1<<64 - 8, 1<<64 - 3, 1<<64 - 1}
	if raceEnabled {
		firsts = firsts[6:]
	}
	for _, spec := range allSpecs() {
		keySizes := keySizesOf(t, spec)
		longest := keySizes[len(keySizes)-1]
		for _, keySize := range keySizes {
			key := randomBytes(uint64(keySize), keySize)
			ref := newReference(t, spec, key)
			for _, sectorSize := range []int{512, 1024, 2048, 4096} {
				for i, first := range firsts {
					if keySize != longest && i >= 2 {
						break // the key size has no say in IVs
					}
					sectors := 2
					if i == len(firsts)-1 && sectorSize == 1024 && !raceEnabled {
						sectors = maxBatchSectors + 1
					}
					plaintext := randomBytes(first, sectors*sectorSize)
					want := bytes.Clone(plaintext)
					ref.encrypt(want, sectorSize, first)
					for _, kernel := range kernelsOf(spec) {
						what := fmt.Sprintf("%s,key=%d,sector=%d,first=%d,%v", spec, keySize, sectorSize, first, kernel)
						s := newSectors(t, spec, key, sectorSize, kernel)
						got := make([]byte, len(plaintext))
						s.Encrypt(got, plaintext, first)
						checkEqual(t, what+",enc", got, want)
						if i%2 == 0 {
							s.Decrypt(got, want, first)
							checkEqual(t, what+",dec", got, plaintext)
						} else {
							s.Decrypt(got, got, first)
							checkEqual(t, what+",dec in place", got, plaintext)
						}
					}
				}
			}
		}
	}
}

// specsPerMode has both a plain and an encrypted IV for each mode and cipher;
// serpentSpecs are those of Serpent.
var (
	serpentSpecs = specsOf("serpent")
	specsPerMode = append(specsOf("serpent"), specsOf("aes")...)
)

func TestNew(t *testing.T) {
	key := randomBytes(7, 64)
	for _, sectorSize := range []int{-512, 0, 1, 16, 256, 511, 513, 768, 1536, 8192, 1 << 30} {
		_, err := New("serpent-xts-plain64", key, sectorSize, serpent.Auto)
		if size := SectorSizeError(0); !errors.As(err, &size) || int(size) != sectorSize {
			t.Errorf("sectors of %d bytes: %v, want a SectorSizeError", sectorSize, err)
		}
	}
	want := "modes: sectors of 100 bytes (must be a power of two from 512 to 4096)"
	if _, err := New("serpent-xts-plain64", key, 100, serpent.Auto); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := New("serpent-xts-plain65", key, 512, serpent.Auto); !errors.As(err, new(*SpecError)) {
		t.Errorf("unknown IV: %v, want a *SpecError", err)
	}
	if _, err := New("serpent-xts-plain64", key, 512, serpent.Kernel(200)); err == nil || !strings.HasPrefix(err.Error(), "modes: ") {
		t.Errorf("unknown kernel: %v, want an error of this package", err)
	}

	// Equal halves are weak but openable.
	newSectors(t, "serpent-xts-plain64", make([]byte, 64), 512, serpent.Auto)

	// The key is copied.
	data, again := randomBytes(8, 512), randomBytes(8, 512)
	s := newSectors(t, "serpent-XTS-essiv:SHA256", key, 512, serpent.Auto)
	s.Encrypt(data, data, 5)
	clear(key)
	s.Encrypt(again, again, 5)
	checkEqual(t, "after the caller wiped its key", again, data)

	for _, kernel := range append(serpent.Kernels(), serpent.Auto) {
		s := newSectors(t, "serpent-ecb", make([]byte, 16), 2048, kernel)
		if s.Kernel() != kernel.Resolve() {
			t.Errorf("kernel %v, want %v", s.Kernel(), kernel.Resolve())
		}
		if s := newSectors(t, "aes-ecb", make([]byte, 16), 512, kernel); s.Kernel() != serpent.Auto {
			t.Errorf("aes: kernel %v, want none", s.Kernel())
		}
		if s.SectorSize() != 2048 {
			t.Errorf("sector size %d, want 2048", s.SectorSize())
		}
	}
}

func TestPanics(t *testing.T) {
	s := newSectors(t, "serpent-xts-plain64", make([]byte, 64), 1024, serpent.Auto)
	wiped := newSectors(t, "serpent-xts-plain64", make([]byte, 64), 1024, serpent.Auto)
	wiped.Wipe()
	wiped.Wipe()
	buf := make([]byte, 1<<18)
	for _, c := range []struct {
		name     string
		s        *Sectors
		dst, src []byte
		want     any
	}{
		{"half a sector", s, buf[:1024], buf[:512], "modes: input not whole sectors"},
		{"one byte more", s, buf[:2048], buf[:1025], "modes: input not whole sectors"},
		{"short output", s, buf[2048:3072], buf[:2048], "modes: output smaller than input"},
		{"overlap ahead", s, buf[16 : 16+1024], buf[:1024], "modes: invalid buffer overlap"},
		{"overlap behind", s, buf[:1024], buf[1 : 1+1024], "modes: invalid buffer overlap"},
		{"overlap of batches", s, buf[:1<<17], buf[1<<16 : 3<<16], "modes: invalid buffer overlap"},
		{"wiped", wiped, buf[:1024], buf[:1024], "modes: used after Wipe"},
		{"next to each other", s, buf[:1024], buf[1024:2048], nil},
		{"nothing", s, nil, nil, nil},
	} {
		for name, do := range map[string]func(dst, src []byte, first uint64){"Encrypt": c.s.Encrypt, "Decrypt": c.s.Decrypt} {
			func() {
				defer func() {
					if got := recover(); got != c.want {
						t.Errorf("%s, %s: panic %v, want %v", c.name, name, got, c.want)
					}
				}()
				do(c.dst, c.src, 0)
			}()
		}
	}
}
