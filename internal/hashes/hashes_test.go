package hashes

import (
	"bytes"
	"encoding/hex"
	"errors"
	"hash"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// The digests of "abc": FIPS 180-2 appendices A.1, B.1, C.1 and D.1; RFC 3874
// section 3.1 for SHA-224; ISO/IEC 10118-3:2004 for RIPEMD-160 and Whirlpool.
var abc = map[string]string{
	"sha1":      "a9993e364706816aba3e25717850c26c9cd0d89d",
	"ripemd160": "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc",
	"sha224":    "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7",
	"sha256":    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	"sha384":    "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
	"sha512":    "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
	"whirlpool": "4e2448a4c6f486bb16b6562c73b4020bf3043e3a731bce721ae1b303d97e6d4c7181eebdb6c57e277d0e34957114cbd6c797fc9d95d8b582d225292076d4eef5",
}

func TestNew(t *testing.T) {
	if got, want := len(Names()), len(abc); got != want {
		t.Fatalf("%d names, want %d", got, want)
	}
	for _, name := range Names() {
		for _, spelling := range []string{name, strings.ToUpper(name)} {
			newHash, err := New(spelling)
			if err != nil {
				t.Errorf("New(%q): %v", spelling, err)
				continue
			}
			h := newHash()
			h.Write([]byte("abc"))
			if got := hex.EncodeToString(h.Sum(nil)); got != abc[name] {
				t.Errorf("%s of abc = %s, want %s", spelling, got, abc[name])
			}
			if newHash() == h {
				t.Errorf("%s: the constructor returned the same hash twice", spelling)
			}
		}
	}
}

func TestNewUnknown(t *testing.T) {
	for _, name := range []string{"", "md5", "sha-1", "sha256 ", "sha3-256", "ripemd-160", "ripemd128", "whirlpool_gcryptbug", "sha1\x00"} {
		_, err := New(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Name != name {
			t.Errorf("New(%q): %v, want an UnknownError with the name", name, err)
		}
	}
	want := `hashes: unknown hash "md5" (known: sha1, ripemd160, sha224, sha256, sha384, sha512, whirlpool)`
	if _, err := New("md5"); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// memory returns the bytes of the struct behind h.
func memory(h hash.Hash) []byte {
	v := reflect.ValueOf(h)
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Elem().Type().Size())
}

func TestWipe(t *testing.T) {
	secretByte := []byte{0xa7}
	for _, name := range Names() {
		newHash, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		blockSize := newHash().BlockSize()
		for _, n := range []int{1, 20, 32, 64, blockSize - 1, blockSize, blockSize + 1, 2*blockSize - 1} {
			h := newHash()
			h.Write(bytes.Repeat(secretByte, n))
			buffered := n % blockSize
			if got := bytes.Count(memory(h), secretByte); got < buffered {
				t.Fatalf("%s: %d secret bytes in memory before Wipe, want at least %d", name, got, buffered)
			}
			h.Sum(nil)
			Wipe(h)

			// A hash that never saw the secret is the same in every byte.
			clean := newHash()
			clean.Write(make([]byte, blockSize))
			if !bytes.Equal(memory(h), memory(clean)) {
				t.Errorf("%s: Wipe after %d bytes left something behind", name, n)
			}
			h.Reset()
			h.Write([]byte("abc"))
			if got := hex.EncodeToString(h.Sum(nil)); got != abc[name] {
				t.Errorf("%s after Wipe and Reset: %s, want %s", name, got, abc[name])
			}
		}
	}
}
