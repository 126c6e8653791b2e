package modes

import (
	"encoding/hex"
	"math/big"
	"testing"
)

// TestLRWTweaks counts across every power of two and around 2^128.
func TestLRWTweaks(t *testing.T) {
	for _, key := range []string{
		"00000000000000000000000000000001",
		"80000000000000000000000000000000",
		"ffffffffffffffffffffffffffffffff",
		"0123456789abcdeffedcba9876543210",
	} {
		tweakKey, err := hex.DecodeString(key)
		if err != nil {
			t.Fatal(err)
		}
		var table lrwTable
		table.init(tweakKey)
		for power := range 129 {
			n := new(big.Int).Lsh(big.NewInt(1), uint(power))
			n.Sub(n, big.NewInt(2))
			n.Mod(n, twoTo128)
			first := make([]byte, 16)
			n.FillBytes(first)
			tweaks := make([]byte, 5*16+lrwRow)
			w := lrwWalk{table: &table}
			w.moveTo(loadNumber(first))
			w.fill(tweaks, 16)
			w.fill(tweaks[16:], 4*16)
			tweaks = tweaks[:5*16]
			for i := 0; i < len(tweaks); i += 16 {
				want := multiply(n, new(big.Int).SetBytes(tweakKey))
				if got := new(big.Int).SetBytes(tweaks[i : i+16]); got.Cmp(want) != 0 {
					t.Errorf("key %s, block %x: tweak %x, want %x", key, n, got, want)
				}
				n.Add(n, big.NewInt(1))
				n.Mod(n, twoTo128)
			}
		}
	}
}
