package luks2

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"serpcrypt/internal/hashes"
	"serpcrypt/volume/luks"
)

func TestAddDigest(t *testing.T) {
	for _, c := range []struct {
		hash string
		size int
	}{{"sha1", 20}, {"SHA256", 32}, {"sha512", 64}, {"whirlpool", 64}, {"ripemd160", 20}} {
		h, _, key := newContainer(t)
		h.Digests = nil
		for range 2 {
			if err := h.AddDigest(background, key, c.hash, 1234); err != nil {
				t.Fatal(err)
			}
		}
		d := h.Digests[0]
		if d.Type != "pbkdf2" || d.Iterations != 1234 || len(d.Salt) != 32 || len(d.Digest) != c.size || !slices.Equal(d.Segments, []int{0}) || len(d.Keyslots) != 0 {
			t.Errorf("%s: %+v", c.hash, d)
		}
		if bytes.Equal(d.Salt, h.Digests[1].Salt) {
			t.Errorf("%s: the same salt again", c.hash)
		}
		if err := h.CheckKey(background, key); err != nil {
			t.Errorf("%s: %v", c.hash, err)
		}
		key[0] ^= 1
		if err := h.CheckKey(background, key); err != luks.ErrMismatch {
			t.Errorf("%s: wrong key: %v", c.hash, err)
		}
	}
}

// TestCheckKeyCountsZeros: HMAC fills up a short key with zeros, so the digest
// alone cannot tell.
func TestCheckKeyCountsZeros(t *testing.T) {
	h, s, key := newContainer(t)
	h.Digests = nil
	clear(key[32:])
	if err := h.AddDigest(background, key, "sha256", 1000); err != nil {
		t.Fatal(err)
	}
	// Without key slots, only the cipher tells which sizes are possible.
	for _, wrong := range [][]int{{0, 63}, {0, 32, 48, 63}} {
		for _, n := range wrong {
			if err := h.CheckKey(background, key[:n]); err != luks.ErrMismatch {
				t.Errorf("key of %d bytes: %v", n, err)
			}
		}
		if err := h.CheckKey(background, append(bytes.Clone(key), 0)); err != luks.ErrMismatch {
			t.Errorf("long key: %v", err)
		}
		if err := h.CheckKey(background, key); err != nil {
			t.Fatal(err)
		}
		addSlots(t, h, s, key, pbkdf2("sha1"))
	}
}

// TestCheckKeyBesideDamagedSlots: what one slot says about the key's size does not
// take the others from use.
func TestCheckKeyBesideDamagedSlots(t *testing.T) {
	for _, size := range []int{0, 31, 32, 1 << 20} {
		h, s, key := newContainer(t)
		addSlots(t, h, s, key, pbkdf2("sha1"), pbkdf2("sha1"))
		h.Keyslots[0].KeySize = size
		if err := h.CheckKey(background, key); err != nil {
			t.Errorf("key_size %d: %v", size, err)
		}
		addSlots(t, h, s, key, pbkdf2("sha1"))
	}
}

func TestAddDigestRefuses(t *testing.T) {
	h, _, key := newContainer(t)
	isParam := func(err error) bool { return errors.As(err, new(*luks.ParamError)) }
	if err := h.AddDigest(background, key, "md5", 1000); !errors.As(err, new(*hashes.UnknownError)) {
		t.Errorf("unknown hash: %v", err)
	}
	for _, iterations := range []int{-1, 0, 999} {
		if err := h.AddDigest(background, key, "sha1", iterations); !isParam(err) {
			t.Errorf("%d iterations: %v", iterations, err)
		}
	}
	for len(h.Digests) < MaxDigests {
		if err := h.AddDigest(background, key, "sha1", 1000); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.AddDigest(background, key, "sha1", 1000); !isParam(err) || len(h.Digests) != MaxDigests {
		t.Errorf("one too many: %v", err)
	}
	h.Digests = nil
	if err := h.CheckKey(background, key); err != ErrNoDigest {
		t.Errorf("no digest: %v", err)
	}
}
