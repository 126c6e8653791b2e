package whirlpool

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func sum(pieces ...[]byte) string {
	h := New()
	for _, p := range pieces {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestISO has the vectors of ISO/IEC 10118-3:2004, dedicated hash-function 7.
func TestISO(t *testing.T) {
	for _, v := range []struct{ message, want string }{
		{"", "19fa61d75522a4669b44e39c1d2e1726c530232130d407f89afee0964997f7a73e83be698b288febcf88e3e03c4f0757ea8964e59b63d93708b138cc42a66eb3"},
		{"a", "8aca2602792aec6f11a67206531fb7d7f0dff59413145e6973c45001d0087b42d11bc645413aeff63a42391a39145a591a92200d560195e53b478584fdae231a"},
		{"abc", "4e2448a4c6f486bb16b6562c73b4020bf3043e3a731bce721ae1b303d97e6d4c7181eebdb6c57e277d0e34957114cbd6c797fc9d95d8b582d225292076d4eef5"},
		{"message digest", "378c84a4126e2dc6e56dcc7458377aac838d00032230f53ce1f5700c0ffb4d3b8421557659ef55c106b4b52ac5a4aaa692ed920052838f3362e86dbd37a8903e"},
		{"abcdefghijklmnopqrstuvwxyz", "f1d754662636ffe92c82ebb9212a484a8d38631ead4238f5442ee13b8054e41b08bf2a9251c30b6a0b8aae86177ab4a6f68f673e7207865d5d9819a3dba4eb3b"},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "dc37e008cf9ee69bf11f00ed9aba26901dd7c28cdec066cc6af42e40f82f3a1e08eba26629129d8fb7cb57211b9281a65517cc879d7b962142c65f5a7af01467"},
		{strings.Repeat("1234567890", 8), "466ef18babb0154d25b9d38a6414f5c08784372bccb204d6549c4afadb6014294d5bd8df2a6c44e538cd047b2681a51a2c60481e88c5a20b2c2a80cf3a9a083b"},
		{"abcdbcdecdefdefgefghfghighijhijk", "2a987ea40f917061f5d6f0a0e4644f488a7a5a52deee656207c562f988e95c6916bdc8031bc5be1b7b947639fe050b56939baaa0adff9ae6745b7b181c3be3fd"},
		{strings.Repeat("a", 1000000), "0c99005beb57eff50a7cf005560ddf5d29057fd86b20bfd62deca0f1ccea4af51fc15490eddc47af32bb2b66c34ff9ad8c6008ad677f77126953b226e4ed8b01"},
	} {
		if got := sum([]byte(v.message)); got != v.want {
			t.Errorf("%.70q:\ngot  %s\nwant %s", v.message, got, v.want)
		}
	}
}

// TestManyMessages hashes the digests of series of messages. What is wanted was
// computed by both libgcrypt 1.10.1 and OpenSSL 3.0.19.
func TestManyMessages(t *testing.T) {
	series := map[string]struct {
		messages int
		message  func(i int) []byte
		want     string
	}{
		"zeros of 0 to 127 bytes (NESSIE, set 2)": {
			128, func(i int) []byte { return make([]byte, i) },
			"51eead44ee356ff2b483379148255f0136c0caf49b3e80fb5a4287d56bd7af0de5740511d71b4baa8b06ae97d78adf93ce5dd90f7c9f883dc8ccbe9b994b415e",
		},
		"512 bits of which one is set (NESSIE, set 3)": {
			512, func(i int) []byte {
				m := make([]byte, 64)
				m[i/8] = 0x80 >> (i % 8)
				return m
			},
			"540c5c4e47c867633a95b2bf004599a53da5678a5b9643d05d6f9534c70e2d201ba4e621eb866e93d99e22dbebad7fbaa40a8318812bbabb77190502fc9d08c9",
		},
		"0 to 399 bytes, byte i being (i*i+3*i)/8": {
			400, func(n int) []byte {
				m := make([]byte, n)
				for i := range m {
					m[i] = byte((i*i + 3*i) / 8)
				}
				return m
			},
			"dbc9ed733788358532d9f9828e82d5aee4eabf93447a6466e8f1a77fa1c0ee99c9fbdb685483cd0bc19d62e10a02b8e6ddedeffe2a89d24f0afd6088c3974151",
		},
	}
	for name, s := range series {
		all := New()
		for i := range s.messages {
			h := New()
			h.Write(s.message(i))
			all.Write(h.Sum(nil))
		}
		if got := hex.EncodeToString(all.Sum(nil)); got != s.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, s.want)
		}
	}
}

// TestSBox has the first row of the S-box ("The Whirlpool Hashing Function",
// appendix B), and that it is a permutation.
func TestSBox(t *testing.T) {
	want := []byte{0x18, 0x23, 0xc6, 0xe8, 0x87, 0xb8, 0x01, 0x4f, 0x36, 0xa6, 0xd2, 0xf5, 0x79, 0x6f, 0x91, 0x52}
	if !bytes.Equal(sbox[:16], want) {
		t.Errorf("got % x, want % x", sbox[:16], want)
	}
	seen := map[byte]bool{}
	for _, y := range sbox {
		seen[y] = true
	}
	if len(seen) != 256 {
		t.Errorf("%d values, want 256", len(seen))
	}
}

// TestPieces writes messages in pieces of all lengths, with a Sum and a saved
// state in between.
func TestPieces(t *testing.T) {
	message := make([]byte, 200)
	rand.NewChaCha8([32]byte{1}).Read(message)
	want := sum(message)
	for i := range len(message) + 1 {
		for j := i; j <= len(message); j += 7 {
			if got := sum(message[:i], message[i:j], message[j:]); got != want {
				t.Fatalf("pieces of %d, %d and %d bytes: got %s, want %s", i, j-i, len(message)-j, got, want)
			}
		}
		h := New()
		h.Write(message[:i])
		if got, want := hex.EncodeToString(h.Sum([]byte("x"))), "78"+sum(message[:i]); got != want {
			t.Fatalf("Sum after %d bytes: got %s, want %s", i, got, want)
		}
		saved, err := h.(encoding.BinaryMarshaler).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		h.Write(message[i:])
		restored := New()
		restored.Write([]byte("something else"))
		if err := restored.(encoding.BinaryUnmarshaler).UnmarshalBinary(saved); err != nil {
			t.Fatal(err)
		}
		restored.Write(message[i:])
		for what, h := range map[string]interface{ Sum([]byte) []byte }{"Sum": h, "a saved state": restored} {
			if got := hex.EncodeToString(h.Sum(nil)); got != want {
				t.Fatalf("after %s at byte %d: got %s, want %s", what, i, got, want)
			}
		}
	}
}

func TestUnmarshalError(t *testing.T) {
	saved, err := New().(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(saved)
	other[0]++
	for _, b := range [][]byte{nil, saved[1:], append(bytes.Clone(saved), 0), other} {
		if err := new(digest).UnmarshalBinary(b); err == nil {
			t.Errorf("%x was taken for a saved state", b)
		}
	}
}

func TestReset(t *testing.T) {
	h := New()
	h.Write(make([]byte, 100))
	h.Reset()
	h.Write([]byte("abc"))
	if got, want := hex.EncodeToString(h.Sum(nil)), sum([]byte("abc")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if h.Size() != Size || h.BlockSize() != BlockSize {
		t.Errorf("sizes %d and %d, want %d and %d", h.Size(), h.BlockSize(), Size, BlockSize)
	}
}

// FuzzSplit compares one Write with two, one of them of a restored state.
func FuzzSplit(f *testing.F) {
	for _, n := range []int{0, 1, 31, 32, 33, 63, 64, 65, 300} {
		f.Add(bytes.Repeat([]byte{0xa5}, n), uint(n/2))
	}
	f.Fuzz(func(t *testing.T, message []byte, at uint) {
		at %= uint(len(message)) + 1
		h := new(digest)
		h.Write(message[:at])
		saved, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var restored digest
		if err := restored.UnmarshalBinary(saved); err != nil {
			t.Fatal(err)
		}
		restored.Write(message[at:])
		if got, want := fmt.Sprintf("%x", restored.Sum(nil)), sum(message); got != want {
			t.Errorf("%d bytes, then the others: got %s, want %s", at, got, want)
		}
	})
}

func BenchmarkHash(b *testing.B) {
	h, p := New(), make([]byte, 8192)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		h.Write(p)
	}
}
