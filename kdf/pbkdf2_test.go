package kdf

import (
	"bytes"
	"context"
	stdpbkdf2 "crypto/pbkdf2"
	stdsha1 "crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"strings"
	"testing"

	"serpcrypt/internal/hashes"
	"serpcrypt/internal/skip"
)

var background = context.Background()

func TestPBKDF2KnownAnswers(t *testing.T) {
	const longPassword, longSalt = "passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt"
	for _, v := range []struct {
		hash, password, salt string
		iterations           int
		key                  string
	}{
		// RFC 6070, section 2.
		{"sha1", "password", "salt", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"},
		{"sha1", "password", "salt", 2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"},
		{"sha1", "password", "salt", 4096, "4b007901b765489abead49d926f721d065a429c1"},
		{"sha1", longPassword, longSalt, 4096, "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"},
		{"sha1", "pass\x00word", "sa\x00lt", 4096, "56fa6aa75548099dcc37d7f03425e0c3"},
		// RFC 7914, section 11.
		{"sha256", "passwd", "salt", 1, "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc" +
			"49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783"},
		{"sha256", "Password", "NaCl", 80000, "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56" +
			"a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d"},
		// No RFC has any for SHA-512: the inputs of RFC 6070, through Python's
		// hashlib and OpenSSL.
		{"sha512", "password", "salt", 1, "867f70cf1ade02cff3752599a3a53dc4af34c7a669815ae5d513554e1c8cf252" +
			"c02d470a285a0501bad999bfe943c08f050235d7d68b1da55e63f73b60a57fce"},
		{"SHA512", longPassword, longSalt, 4096, "8c0511f4c6e597c6ac6315d8f0362e225f3c501495ba23b868c005174dc4ee71" +
			"115b59f9e60cd9532fa33e0f75aefe30225c583a186cd82bd4daea9724a3d3b8"},
		// Nor for these: the same inputs through both OpenSSL and libgcrypt.
		{"ripemd160", "password", "salt", 1, "b725258b125e0bacb0e2307e34feb16a4d0d6aed6cb4b0eee4"},
		{"ripemd160", longPassword, longSalt, 4096, "503b9a069633b261b2d3e4f21c5d0cafeb3f5008aec25ed214"},
		{"whirlpool", "password", "salt", 1, "7e25009bf8afade8ab33911d331b5b3e987fc7c3e2d5fdb3f33c183e837c3578" +
			"50a75eb8baad2c05b1e3bc7068c2a2d5c0f3e586f401610ad02f525c8fcf2cbd"},
		{"Whirlpool", longPassword, longSalt, 4096, "b704488bcc9371a5fa3a7eb6e7555549a96eae3d572c0d505e1970f8460425d0" +
			"ccc4cdb091f23082da6f94d3e594012075443491b608d81af37952c205403ad3"},
	} {
		t.Run(fmt.Sprintf("%s,iterations=%d,len=%d", v.hash, v.iterations, len(v.key)/2), func(t *testing.T) {
			key, err := PBKDF2(background, v.hash, Job{[]byte(v.password), []byte(v.salt), v.iterations, len(v.key) / 2})
			if err != nil {
				t.Fatal(err)
			}
			defer key.Close()
			if got := hex.EncodeToString(key.Bytes()); got != v.key {
				t.Errorf("got %s, want %s", got, v.key)
			}
		})
	}
}

func TestPBKDF2ManyIterations(t *testing.T) {
	if testing.Short() {
		skip.Skip(t, "takes seconds, and -short is set")
	}
	key, err := PBKDF2(background, "sha1", Job{[]byte("password"), []byte("salt"), 16777216, 20})
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	const want = "eefe3d61cd4da4e4e9945b3d6ba2158c2634e984" // RFC 6070, section 2
	if got := hex.EncodeToString(key.Bytes()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPBKDF2AgainstStandardLibrary(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	random := func(n int) []byte { return randomBytes(r, n) }
	for _, h := range []struct {
		name string
		new  func() hash.Hash
	}{{"sha1", stdsha1.New}, {"sha256", sha256.New}, {"sha512", sha512.New}} {
		for keyLen := 1; keyLen <= 140; keyLen++ {
			// Passwords longer than a block are hashed first.
			password, salt, iterations := random(r.IntN(300)), random(r.IntN(100)), 1+r.IntN(20)
			want, err := stdpbkdf2.Key(h.new, string(password), salt, iterations, keyLen)
			if err != nil {
				t.Fatal(err)
			}
			key, err := PBKDF2(background, h.name, Job{password, salt, iterations, keyLen})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(key.Bytes(), want) {
				t.Errorf("%s, password %x, salt %x, iterations %d: got %x, want %x", h.name, password, salt, iterations, key.Bytes(), want)
			}
			key.Close()
		}
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

func TestPBKDF2Refuses(t *testing.T) {
	var unknown *hashes.UnknownError
	if _, err := PBKDF2(background, "md5", Job{Iterations: 1, KeyLen: 16}); !errors.As(err, &unknown) || unknown.Name != "md5" {
		t.Errorf("md5: error is %v", err)
	}
	tooMany := MaxIterations
	tooMany++ // below zero where int has 32 bits
	for _, c := range []struct{ iterations, keyLen int }{{0, 16}, {-1, 16}, {tooMany, 16}, {1, 0}, {1, -1}} {
		for _, hash := range []string{"sha1", "sha256"} {
			key, err := PBKDF2(background, hash, Job{Iterations: c.iterations, KeyLen: c.keyLen})
			if err == nil || !strings.HasPrefix(err.Error(), "kdf: ") {
				t.Errorf("%s, %+v: error is %v", hash, c, err)
			}
			if key != nil {
				t.Errorf("%s, %+v: got a key", hash, c)
			}
		}
	}
}

func BenchmarkPBKDF2(b *testing.B) {
	for _, keyLen := range []int{20, 32, 64} {
		b.Run(fmt.Sprintf("sha1,len=%d", keyLen), func(b *testing.B) {
			const iterations = 10000
			for b.Loop() {
				key, err := PBKDF2(background, "sha1", Job{[]byte("password"), []byte("salt"), iterations, keyLen})
				if err != nil {
					b.Fatal(err)
				}
				key.Close()
			}
			b.ReportMetric(float64(b.N)*iterations/b.Elapsed().Seconds(), "iterations/s")
		})
	}
}
