package af

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"serpcrypt/internal/hashes"
)

// mergeVectors were computed with Python's hashlib, and libgcrypt for whirlpool,
// from the specification: byte i of the material is (7*i + key size) mod 256, in
// three stripes.
var mergeVectors = []struct {
	hash    string
	keySize int
	key     string
}{
	{"sha1", 16, "4c088fe6cb27a05ea2ab3fe75515e58f"},
	{"sha1", 24, "9c915c5d9a7972a09e6cb661ff3122b4a493bc48727988fe"},
	{"sha1", 64, "2eab5fd301317f838e44badfc3309b69a58b45fe3a529c76c37bed64200a81330c961076c3ed923f151a23bc7cc224db6060a3a099f135f6775efe1aee651686"},
	{"sha256", 16, "ce8107e0f8a7f24730fac7796c1ffed4"},
	{"sha256", 24, "190f7c4db8697efafa353ba8d5112e786c15b087aebc46d4"},
	{"sha256", 64, "b1447eabc7bc84164fc67f725fdad2d5c70e3fa399772087408548b993fe4ecda739ebd023b7caa68177c7f59b71fce768082ecebbe17d0c3ab0319514da8db9"},
	{"sha512", 16, "2912c28b8f66ecbd94fd46de3b61b70f"},
	{"sha512", 64, "4d19485906998dcda3c47a80092776943c0ef0a65445d0b97f43bd8cd4b0d11b1c8587af4ae54c4715f8eed00bf4fc9f1bec28debce043ed7ecb4d4035650113"},
	{"sha512", 96, "d804ceb01c15636bc56ebc1bc0845a5a172d67828038fcd0bc00b9e8565814539ecd8e7dd7847f851d770f97f682850a8144229db4e22cb59af7eef575c504e0644868558ee64b0323d4464bc4609b30bf270664303af61a1918aa12c60595cc"},
	{"ripemd160", 16, "15d0965a10cb90f16089760ce3f215d7"},
	{"ripemd160", 64, "ae9ffdfa6586cf420825c96f89cfde23b667cb7a75fa713d7c4af045e92724c598f647c83229c745f7832ef42de28717ea40b39d44472940007e770775b4ac73"},
	{"whirlpool", 16, "334196a86404310fb3c8f8e72452c0e5"},
	{"whirlpool", 96, "5be14dca5f71e655a0df1a891b5351000f08814738e5a3e49773846fa0cdd6a0528415d448fafa7eaf68f7a49b80b0496af686a5d1b33b12d77227eab239407615fbd5d85f494fee80b853e2bd64421fa3a00aa528314d78c1826674adda975e"},
}

func TestMerge(t *testing.T) {
	const stripes = 3
	for _, v := range mergeVectors {
		t.Run(fmt.Sprintf("%s,key=%d", v.hash, v.keySize), func(t *testing.T) {
			material := make([]byte, stripes*v.keySize)
			for i := range material {
				material[i] = byte(7*i + v.keySize)
			}
			before := bytes.Clone(material)
			key := make([]byte, v.keySize)
			if err := Merge(key, material, stripes, v.hash); err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(key); got != v.key {
				t.Errorf("got %s, want %s", got, v.key)
			}
			if !bytes.Equal(material, before) {
				t.Error("the material was changed")
			}
		})
	}
}

func TestSplit(t *testing.T) {
	for _, hash := range hashes.Names() {
		for _, keySize := range []int{1, 16, 20, 21, 64, 128} {
			for _, stripes := range []int{1, 2, 4000} {
				key := make([]byte, keySize)
				for i := range key {
					key[i] = byte(i + 1)
				}
				material, again := make([]byte, keySize*stripes), make([]byte, keySize*stripes)
				if err := errors.Join(Split(material, key, stripes, hash), Split(again, key, stripes, hash)); err != nil {
					t.Fatal(err)
				}
				if stripes > 1 && keySize >= 16 && bytes.Equal(material[:keySize], again[:keySize]) {
					t.Errorf("%s, key of %d bytes, %d stripes: the same random stripes twice", hash, keySize, stripes)
				}
				merged := make([]byte, keySize)
				if err := Merge(merged, material, stripes, hash); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(merged, key) {
					t.Errorf("%s, key of %d bytes, %d stripes: merged to %x, want %x", hash, keySize, stripes, merged, key)
				}
			}
		}
	}
}

// TestEveryStripeMatters flips one bit in each of some stripes.
func TestEveryStripeMatters(t *testing.T) {
	const stripes = 100
	key := bytes.Repeat([]byte{0x5A}, 64)
	material := make([]byte, len(key)*stripes)
	if err := Split(material, key, stripes, "sha1"); err != nil {
		t.Fatal(err)
	}
	merged := make([]byte, len(key))
	for at := 3; at < len(material); at += 619 {
		material[at] ^= 0x10
		if err := Merge(merged, material, stripes, "sha1"); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(merged, key) {
			t.Errorf("a bit flipped at byte %d changes nothing", at)
		}
		material[at] ^= 0x10
	}
}

func TestErrors(t *testing.T) {
	var size *SizeError
	for _, c := range []struct{ material, key, stripes int }{
		{0, 0, 4000}, {64, 64, 0}, {64, 64, -1}, {127, 64, 2}, {129, 64, 2}, {64, 64, 2},
	} {
		material, key := make([]byte, c.material), make([]byte, c.key)
		if err := Split(material, key, c.stripes, "sha1"); !errors.As(err, &size) {
			t.Errorf("Split of %v: got %v, want a SizeError", c, err)
		}
		if err := Merge(key, material, c.stripes, "sha1"); !errors.As(err, &size) {
			t.Errorf("Merge of %v: got %v, want a SizeError", c, err)
		}
	}
	var unknown *hashes.UnknownError
	if err := Merge(make([]byte, 1), make([]byte, 2), 2, "md4"); !errors.As(err, &unknown) {
		t.Errorf("Merge with md4: got %v, want an UnknownError", err)
	}
	if err := Split(make([]byte, 2), make([]byte, 1), 2, "md4"); !errors.As(err, &unknown) {
		t.Errorf("Split with md4: got %v, want an UnknownError", err)
	}
}
