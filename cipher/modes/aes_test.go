package modes

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"encoding/hex"
	"fmt"
	"os"
	"testing"

	"serpcrypt/cipher/serpent"
)

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAESVectors has those of NIST SP 800-38A, appendix F.1, F.2 and F.5.
func TestAESVectors(t *testing.T) {
	const (
		plaintext = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
		key128    = "2b7e151628aed2a6abf7158809cf4f3c"
		key192    = "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b"
		key256    = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
		iv        = "000102030405060708090a0b0c0d0e0f"
		counter   = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
	)
	for _, v := range []struct {
		section         string
		mode            mode
		key, iv, wanted string
	}{
		{"F.1.1", modeECB, key128, "", "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4"},
		{"F.1.3", modeECB, key192, "", "bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eefef7afd2270e2e60adce0ba2face6444e9a4b41ba738d6c72fb16691603c18e0e"},
		{"F.1.5", modeECB, key256, "", "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7"},
		{"F.2.1", modeCBC, key128, iv, "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7"},
		{"F.2.3", modeCBC, key192, iv, "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd"},
		{"F.2.5", modeCBC, key256, iv, "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b"},
		{"F.5.1", modeCTR, key128, counter, "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee"},
		{"F.5.3", modeCTR, key192, counter, "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e941e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050"},
		{"F.5.5", modeCTR, key256, counter, "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"},
	} {
		t.Run(v.section, func(t *testing.T) {
			c, err := aes.NewCipher(fromHex(t, v.key))
			if err != nil {
				t.Fatal(err)
			}
			b := blockwise{data: c}
			data := fromHex(t, plaintext)
			b.crypt(v.mode, data, data, fromHex(t, v.iv), len(data), true)
			checkEqual(t, "encrypted", data, fromHex(t, v.wanted))
			b.crypt(v.mode, data, data, fromHex(t, v.iv), len(data), false)
			checkEqual(t, "decrypted", data, fromHex(t, plaintext))
		})
	}
}

func TestAESXTSVectors(t *testing.T) {
	f, err := os.Open("testdata/ieee1619.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var sequence []byte
	for i := range 512 {
		sequence = append(sequence, byte(i))
	}
	var before []byte
	vectors := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); line == "" || line[0] == '#' {
			continue
		}
		var vector int
		var key1, key2, want string
		var number uint64
		if _, err := fmt.Sscan(lines.Text(), &vector, &key1, &key2, &number, &want); err != nil {
			t.Fatal(err)
		}
		plaintext := sequence
		if vector == 5 {
			plaintext = before
		}
		s := newSectors(t, "aes-xts-plain64", fromHex(t, key1+key2), 512, serpent.Auto)
		got := make([]byte, 512)
		s.Encrypt(got, plaintext, number)
		checkEqual(t, fmt.Sprintf("vector %d, enc", vector), got, fromHex(t, want))
		before = bytes.Clone(got)
		s.Decrypt(got, got, number)
		checkEqual(t, fmt.Sprintf("vector %d, dec", vector), got, plaintext)
		vectors++
	}
	if vectors != 3 {
		t.Errorf("%d vectors, want 3", vectors)
	}
}
