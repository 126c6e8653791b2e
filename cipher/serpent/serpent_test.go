package serpent

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// spoil flips all bits of v, where it has any.
func spoil[T any](v *T) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
	for i := range b {
		b[i] = ^b[i]
	}
}

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// nessie are from the NESSIE project's files Serpent-*-128.verified.test-vectors,
// which have the byte order of this package.
var nessie = []struct{ name, key, plaintext, ciphertext string }{
	{"128 bits, set 1, vector 0", "80000000000000000000000000000000", "00000000000000000000000000000000", "264e5481eff42a4606abda06c0bfda3d"},
	{"128 bits, set 1, vector 1", "40000000000000000000000000000000", "00000000000000000000000000000000", "4a231b3bc727993407ac6ec8350e8524"},
	{"128 bits, set 4, vector 0", "000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "563e2cf8740a27c164804560391e9b27"},
	{"192 bits, set 1, vector 0", "800000000000000000000000000000000000000000000000", "00000000000000000000000000000000", "9e274ead9b737bb21efcfca548602689"},
	{"192 bits, set 1, vector 3", "100000000000000000000000000000000000000000000000", "00000000000000000000000000000000", "bec1e37824cf721e5d87f6cb4ebfb9be"},
	{"192 bits, set 4, vector 0", "000102030405060708090a0b0c0d0e0f1011121314151617", "00112233445566778899aabbccddeeff", "6ab816c82de53b93005008afa2246a02"},
	{"256 bits, set 3, vector 1", strings.Repeat("01", 32), strings.Repeat("01", 16), "ec9723b15b2a6489f84c4524fffc2748"},
	{"256 bits, set 3, vector 2", strings.Repeat("02", 32), strings.Repeat("02", 16), "1187f485538514476184e567da0421c7"},
	{"256 bits, set 4, vector 0", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", "00112233445566778899aabbccddeeff", "2868b7a2d28ecd5e4fdefac3c4330074"},
}

// submission are from the files ecb_vk.txt of the AES submission, test 1 of
// each key size. They show keys and blocks with the last byte first.
var submission = []struct{ name, key, plaintext, ciphertext string }{
	{"128 bits", "80000000000000000000000000000000", "00000000000000000000000000000000", "49afbfad9d5a34052cd8ffa5986bd2dd"},
	{"192 bits", "800000000000000000000000000000000000000000000000", "00000000000000000000000000000000", "e78e5402c7195568ac3678f7a3f60c66"},
	{"256 bits", "8000000000000000000000000000000000000000000000000000000000000000", "00000000000000000000000000000000", "abed96e766bf28cbc0ebd21a82ef0819"},
}

func TestKnownAnswers(t *testing.T) {
	check := func(t *testing.T, key, plaintext, ciphertext []byte) {
		for _, k := range Kernels() {
			var c Cipher
			if err := c.Init(key, k); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, BlockSize)
			if c.Encrypt(got, plaintext); !bytes.Equal(got, ciphertext) {
				t.Errorf("%v: Encrypt: got %x, want %x", k, got, ciphertext)
			}
			if c.Decrypt(got, got); !bytes.Equal(got, plaintext) {
				t.Errorf("%v: Decrypt: got %x, want %x", k, got, plaintext)
			}
			many, want := bytes.Repeat(plaintext, 37), bytes.Repeat(ciphertext, 37)
			if c.EncryptBlocks(many, many); !bytes.Equal(many, want) {
				t.Errorf("%v: EncryptBlocks: got %x, want %x", k, many, want)
			}
		}
		r := newReference(key)
		got := make([]byte, BlockSize)
		if r.Encrypt(got, plaintext); !bytes.Equal(got, ciphertext) {
			t.Errorf("the reference of these tests: got %x, want %x", got, ciphertext)
		}
		if r.Decrypt(got, got); !bytes.Equal(got, plaintext) {
			t.Errorf("the reference of these tests: got %x, want %x", got, plaintext)
		}
	}
	for _, v := range nessie {
		t.Run("NESSIE/"+v.name, func(t *testing.T) {
			check(t, fromHex(t, v.key), fromHex(t, v.plaintext), fromHex(t, v.ciphertext))
		})
	}
	for _, v := range submission {
		t.Run("submission/"+v.name, func(t *testing.T) {
			key, plaintext, ciphertext := fromHex(t, v.key), fromHex(t, v.plaintext), fromHex(t, v.ciphertext)
			slices.Reverse(key)
			slices.Reverse(plaintext)
			slices.Reverse(ciphertext)
			check(t, key, plaintext, ciphertext)
		})
	}
}

// TestIterated is the end of NESSIE's 256 bits, set 4, vector 0: the plaintext
// encrypted many times.
func TestIterated(t *testing.T) {
	x := fromHex(t, "00112233445566778899aabbccddeeff")
	c, err := NewCipher(countUp(32, 1))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 1000; i++ {
		c.Encrypt(x, x)
		want := map[int]string{100: "8bf56992354f3f1a0f4e49dcba82cbc0", 1000: "9b1d8b34845df9bfd36aaad0cda1c8fe"}[i]
		if got := hex.EncodeToString(x); want != "" && got != want {
			t.Errorf("%d times: got %s, want %s", i, got, want)
		}
	}
}

func TestSelfTest(t *testing.T) {
	for _, k := range Kernels() {
		if err := SelfTest(k); err != nil {
			t.Error(err)
		}
	}
	var unusable *KernelError
	if err := SelfTest(Kernel(200)); !errors.As(err, &unusable) {
		t.Errorf("unknown kernel: got %v, want a KernelError", err)
	}
}

// TestSelfTestFindsFaults lets the self test see spoilt round keys.
func TestSelfTestFindsFaults(t *testing.T) {
	single := func(c *Cipher) error { return c.testKnownAnswer(knownAnswers[2].ciphertext) }
	sectors := func(c *Cipher) error { return c.testOperations(selfTestBlocks, 2) }
	for _, k := range Kernels() {
		for _, fault := range []struct {
			name  string
			spoil func(c *Cipher)
			test  func(c *Cipher) error
			found string
		}{
			{"none", func(c *Cipher) {}, single, ""},
			{"none", func(c *Cipher) {}, sectors, ""},
			{"portable encryption", func(c *Cipher) { spoil(&c.pairs.encrypt) }, single, "Encrypt gives"},
			{"portable decryption", func(c *Cipher) { spoil(&c.pairs.decrypt) }, single, "Decrypt gives"},
			{"vector kernels", func(c *Cipher) { spoil(&c.vector) }, single, "EncryptBlocks gives"},
			{"vector kernels", func(c *Cipher) { spoil(&c.vector) }, sectors, "EncryptXEX gives"},
		} {
			if fault.name == "vector kernels" && k == Generic {
				continue
			}
			var c Cipher
			if err := c.Init(countUp(32, 1), k); err != nil {
				t.Fatal(err)
			}
			fault.spoil(&c)
			err := fault.test(&c)
			if (err == nil) != (fault.found == "") || !strings.Contains(fmt.Sprint(err), fault.found) {
				t.Errorf("%v, fault in %s: got %v, want %q", k, fault.name, err, fault.found)
			}
		}
	}
}

func TestKeySizes(t *testing.T) {
	for n := range 70 {
		c, err := NewCipher(make([]byte, n))
		var sizeError KeySizeError
		switch {
		case n == 16 || n == 24 || n == 32:
			if err != nil || c.BlockSize() != BlockSize {
				t.Errorf("%d bytes: %v", n, err)
			}
		case !errors.As(err, &sizeError) || int(sizeError) != n || c != nil:
			t.Errorf("%d bytes: got %v, want KeySizeError(%d)", n, err, n)
		}
	}
	if got, want := KeySizeError(17).Error(), "serpent: key of 17 bytes; it has 16, 24 or 32"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPanics(t *testing.T) {
	c := newTestCipher(t, Auto)
	b := make([]byte, 128)
	for name, f := range map[string]func(){
		"input not full block":               func() { c.Encrypt(b[64:], b[:15]) },
		"output not full block":              func() { c.Decrypt(b[64:79], b[:16]) },
		"input not full blocks":              func() { c.EncryptBlocks(b[64:], b[:31]) },
		"output smaller than input":          func() { c.DecryptBlocks(b[96:], b[:48]) },
		"invalid buffer overlap":             func() { c.EncryptBlocks(b[8:], b[:32]) },
		"not one tweak per block":            func() { c.EncryptXEX(b, b[:32], b[64:80]) },
		"tweaks or IVs not full blocks":      func() { c.EncryptXTS(b, b[:32], b[64:81]) },
		"no tweaks or IVs":                   func() { c.CryptCTR(b, b[:32], nil) },
		"sectors not of equal size in full ": func() { c.DecryptCBC(b, b[:48], b[64:96]) },
		"sectors not of equal size in": func() {
			c.DecryptCBC(make([]byte, 18*BlockSize), make([]byte, 18*BlockSize), make([]byte, 17*BlockSize))
		},
		"cipher without a key": func() { new(Cipher).Encrypt(b, b) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "serpent: "+name) {
					t.Errorf("got %q, want a panic %q", got, name)
				}
			}()
			f()
		})
	}
	t.Run("all methods check", func(t *testing.T) {
		for _, o := range operations {
			for _, bad := range []struct {
				name     string
				dst, src []byte
			}{{"short output", b[32:48], b[:32]}, {"half a block", b[64:], b[:24]}, {"overlap", b[:64], b[16:80]}} {
				if !panics(func() { o.run(c, bad.dst, bad.src, make([]byte, o.ivBytes(1, len(bad.src)))) }) {
					t.Errorf("%s: no panic for %s", o.name, bad.name)
				}
			}
		}
	})
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestWipe(t *testing.T) {
	for _, k := range Kernels() {
		c := newTestCipher(t, k)
		if *c == (Cipher{}) {
			t.Fatal("nothing to wipe")
		}
		c.Wipe()
		if *c != (Cipher{}) {
			t.Errorf("%v: the cipher is not zero after Wipe", k)
		}
		if !panics(func() { c.EncryptBlocks(nil, nil) }) {
			t.Errorf("%v: usable after Wipe", k)
		}
		c = newTestCipher(t, k)
		if err := c.Init(make([]byte, 5), k); err == nil || *c != (Cipher{}) {
			t.Errorf("%v: after a failed Init: %v, and the old key is still there", k, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	c := newTestCipher(t, Auto)
	src := randomText(64 * BlockSize)
	want := make([]byte, len(src))
	c.EncryptBlocks(want, src)
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				got := make([]byte, len(src))
				if c.EncryptBlocks(got, src); !bytes.Equal(got, want) {
					t.Fatal("wrong")
				}
			}
		})
	}
}
