package modes

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/xts"
	"golang.org/x/sys/unix"

	"serpcrypt/cipher/serpent"
)

func newSectors(t testing.TB, spec string, key []byte, sectorSize int, kernel serpent.Kernel) *Sectors {
	t.Helper()
	s, err := New(spec, key, sectorSize, kernel)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Wipe)
	return s
}

func keySizesOf(t testing.TB, spec string) []int {
	t.Helper()
	parsed, err := ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.KeySizes()
}

// randomBytes returns the same bytes for the same seed.
func randomBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed))).Read(b)
	return b
}

// checkEqual reports the first block that differs.
func checkEqual(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d bytes, want %d", what, len(got), len(want))
		return
	}
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for got[i] == want[i] {
		i++
	}
	i &^= 15
	t.Errorf("%s: differs at byte %d: got %x, want %x", what, i, got[i:i+16], want[i:i+16])
}

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

// newBlock returns the bare cipher of a specification.
func newBlock(spec string) func(key []byte) (cipher.Block, error) {
	if strings.HasPrefix(spec, "aes-") {
		return aes.NewCipher
	}
	return func(key []byte) (cipher.Block, error) { return serpent.NewCipher(key) }
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

func specsOf(cipher string) (specs []string) {
	for _, mode := range []string{
		"ecb",
		"cbc-plain64", "cbc-essiv:sha256",
		"ctr-plain64", "ctr-essiv:sha256",
		"lrw-benbi", "lrw-essiv:sha256",
		"xts-plain64", "xts-essiv:sha256",
	} {
		specs = append(specs, cipher+"-"+mode)
	}
	return specs
}

// kernelsOf returns the kernels that the cipher of spec can run with.
func kernelsOf(spec string) []serpent.Kernel {
	if !strings.HasPrefix(spec, "serpent-") {
		return []serpent.Kernel{serpent.Auto}
	}
	return serpent.Kernels()
}

func longestKey(t testing.TB, spec string) []byte {
	sizes := keySizesOf(t, spec)
	return randomBytes(3, sizes[len(sizes)-1])
}

// TestRunLengths runs few sectors, any number of them, and about as many as are
// in a batch, to another place, in place and misaligned, and looks at the bytes
// around.
func TestRunLengths(t *testing.T) {
	const maxSectors = maxBatchSectors + 10
	const first = 1<<64 - 3
	var lengths []int
	for n := range maxSectors + 1 {
		if n%13 == 0 || !raceEnabled && (n < 70 || n > maxBatchSectors-10) {
			lengths = append(lengths, n)
		}
	}
	for _, spec := range specsPerMode {
		key := longestKey(t, spec)
		plaintext := randomBytes(4, maxSectors*512)
		ciphertext := bytes.Clone(plaintext)
		newReference(t, spec, key).encrypt(ciphertext, 512, first)
		for _, kernel := range kernelsOf(spec) {
			s := newSectors(t, spec, key, 512, kernel)
			for _, op := range []struct {
				name     string
				do       func(dst, src []byte, first uint64)
				src, dst []byte
			}{
				{"enc", s.Encrypt, plaintext, ciphertext},
				{"dec", s.Decrypt, ciphertext, plaintext},
			} {
				src := make([]byte, len(plaintext)+64)
				dst := make([]byte, len(plaintext)+64)
				for _, n := range lengths {
					size := n * 512
					what := fmt.Sprintf("%s,%v,%s,sectors=%d", spec, kernel, op.name, n)
					before := bytes.Repeat([]byte{0xaa}, len(dst))
					at := 1 + n%16
					switch n % 3 {
					case 0:
						copy(dst, before)
						op.do(dst[:size], op.src[:size], first)
						checkEqual(t, what, dst[:size], op.dst[:size])
						checkEqual(t, what+" (behind)", dst[size:], before[size:])
					case 1:
						copy(dst, before)
						copy(dst[at:], op.src[:size])
						op.do(dst[at:at+size], dst[at:at+size], first)
						checkEqual(t, what+" in place", dst[at:at+size], op.dst[:size])
						checkEqual(t, what+" (before)", dst[:at], before[:at])
						checkEqual(t, what+" (behind)", dst[at+size:], before[at+size:])
					case 2:
						// dst may be longer than src.
						copy(dst, before)
						copy(src[at:], op.src[:size])
						op.do(dst[17-at:], src[at:at+size], first)
						checkEqual(t, what+" misaligned", dst[17-at:17-at+size], op.dst[:size])
						checkEqual(t, what+" (before)", dst[:17-at], before[:17-at])
						checkEqual(t, what+" (behind)", dst[17-at+size:], before[17-at+size:])
						checkEqual(t, what+" (source)", src[at:at+size], op.src[:size])
					}
				}
			}
		}
	}
}

// guarded returns n bytes, a multiple of 512, that have a page without access
// right behind them (atEnd) or right before.
func guarded(t *testing.T, n int, atEnd bool) []byte {
	page := unix.Getpagesize()
	length := (n + page - 1) / page * page
	pages, err := unix.Mmap(-1, 0, length+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(pages) })
	for _, guard := range [][]byte{pages[:page], pages[page+length:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	inner := pages[page : page+length : page+length]
	if atEnd {
		return inner[length-n:]
	}
	return inner[:n:n]
}

func TestGuardPages(t *testing.T) {
	for _, atEnd := range []bool{false, true} {
		for _, sectors := range []int{1, 2, 7, fewSectors, fewSectors + 1, maxBatchSectors, maxBatchSectors + 1} {
			n := sectors * 512
			src, dst := guarded(t, n, atEnd), guarded(t, n, atEnd)
			for _, spec := range specsPerMode {
				key := longestKey(t, spec)
				plaintext := randomBytes(5, n)
				ciphertext := bytes.Clone(plaintext)
				newReference(t, spec, key).encrypt(ciphertext, 512, 9)
				for _, kernel := range kernelsOf(spec) {
					s := newSectors(t, spec, key, 512, kernel)
					what := fmt.Sprintf("%s,%v,sectors=%d,end=%v", spec, kernel, sectors, atEnd)
					copy(src, plaintext)
					s.Encrypt(dst, src, 9)
					checkEqual(t, what+",enc", dst, ciphertext)
					s.Decrypt(src, dst, 9)
					checkEqual(t, what+",dec", src, plaintext)
					s.Encrypt(src, src, 9)
					checkEqual(t, what+",in place", src, ciphertext)
				}
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	for _, spec := range specsPerMode {
		for _, kernel := range kernelsOf(spec) {
			for _, sectorSize := range []int{512, 4096} {
				s := newSectors(t, spec, longestKey(t, spec), sectorSize, kernel)
				data := make([]byte, 128<<10)
				for _, n := range []int{sectorSize, len(data)} {
					if got := testing.AllocsPerRun(5, func() {
						s.Encrypt(data[:n], data[:n], 1)
						s.Decrypt(data[:n], data[:n], 1)
					}); got != 0 {
						t.Errorf("%s,%v,sector=%d,len=%d: %v allocations", spec, kernel, sectorSize, n, got)
					}
				}
			}
		}
	}
}

func TestConcurrent(t *testing.T) {
	const workers, rounds, sectors = 8, 4, 20
	for _, spec := range specsPerMode {
		key := longestKey(t, spec)
		plaintext := randomBytes(6, sectors*512)
		ref := newReference(t, spec, key)
		s := newSectors(t, spec, key, 512, serpent.Auto)
		var want [workers][]byte
		for i := range want {
			want[i] = bytes.Clone(plaintext)
			ref.encrypt(want[i], 512, uint64(1000*i))
		}
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				data := bytes.Clone(plaintext)
				for range rounds {
					s.Encrypt(data, data, uint64(1000*i))
					checkEqual(t, spec+" enc", data, want[i])
					s.Decrypt(data, data, uint64(1000*i))
					checkEqual(t, spec+" dec", data, plaintext)
				}
			})
		}
		wg.Wait()
	}
}

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
