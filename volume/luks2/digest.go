package luks2

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"serpcrypt/cipher/modes"
	"serpcrypt/internal/hashes"
	"serpcrypt/kdf"
	"serpcrypt/volume/luks"
)

// ErrNoDigest says that a header does not tell which volume key is right.
var ErrNoDigest = errors.New("luks2: no digest is for segment 0")

// newSaltSize is that of new digests and key slots, in bytes, as cryptsetup's.
const newSaltSize = 32

// dataSegment is the number of the only segment that is supported.
const dataSegment = 0

// AddDigest adds the digest of the volume key of segment 0. No key slot belongs
// to it yet. It changes nothing if ctx is done before, whose error
// it returns; others are a *luks.ParamError or an *hashes.UnknownError.
func (h *Header) AddDigest(ctx context.Context, key []byte, hash string, iterations int) error {
	if err := checkNewPBKDF2("digest ", hash, iterations); err != nil {
		return err
	}
	d := &Digest{Type: DigestPBKDF2, Segments: []int{dataSegment}, Hash: strings.ToLower(hash), Iterations: iterations, Salt: newSalt()}
	number := freeNumber(h.Digests, MaxDigests)
	if number < 0 {
		return luks.BadParam("digest", "there are %d already", len(h.Digests))
	}
	newHash, err := hashes.New(hash)
	if err != nil {
		return fmt.Errorf("luks2: %w", err)
	}
	d.Digest = make([]byte, newHash().Size())
	digest, err := kdf.PBKDF2(ctx, hash, d.job(key))
	if err != nil {
		return err
	}
	defer digest.Close()
	copy(d.Digest, digest.Bytes())
	if h.Digests == nil {
		h.Digests = map[int]*Digest{}
	}
	h.Digests[number] = d
	return nil
}

// CheckKey returns luks.ErrMismatch if key is not the volume key, ErrNoDigest, and the
// error of ctx if that is done before this is known. The header needs to have
// passed Validate.
func (h *Header) CheckKey(ctx context.Context, key []byte) error {
	d := h.volumeDigest()
	if d == nil {
		return ErrNoDigest
	}
	if !h.isVolumeKeySize(d, len(key)) {
		return luks.ErrMismatch
	}
	right, err := d.match(ctx, [][]byte{key})
	if err == nil && right < 0 {
		return luks.ErrMismatch
	}
	return err
}

// isVolumeKeySize compares a number of bytes with the key slots that can be
// opened, or else with the cipher. HMAC fills up a short key with zeros, so the
// digest cannot tell.
func (h *Header) isVolumeKeySize(d *Digest, n int) bool {
	known := false
	for _, slot := range d.Keyslots {
		if h.checkSlot(slot) != nil {
			continue
		}
		if h.Keyslots[slot].KeySize == n {
			return true
		}
		known = true
	}
	if known {
		return false
	}
	s := h.Segments[dataSegment]
	if s == nil {
		return false
	}
	spec, err := modes.ParseSpec(s.Encryption)
	return err == nil && spec.CheckKeySize(n) == nil
}

// volumeDigest returns the digest of the volume key, or nil.
func (h *Header) volumeDigest() *Digest {
	return h.firstDigest((*Digest).isOfVolume)
}

func (d *Digest) isOfVolume() bool { return slices.Contains(d.Segments, dataSegment) }

// digestOf returns the digest that a key slot belongs to, or nil.
func (h *Header) digestOf(slot int) *Digest {
	return h.firstDigest(func(d *Digest) bool { return slices.Contains(d.Keyslots, slot) })
}

func (h *Header) firstDigest(is func(*Digest) bool) *Digest {
	for _, number := range slices.Sorted(maps.Keys(h.Digests)) {
		if is(h.Digests[number]) {
			return h.Digests[number]
		}
	}
	return nil
}

// job is the derivation of a volume key's digest.
func (d *Digest) job(key []byte) kdf.Job {
	return kdf.Job{Password: key, Salt: d.Salt, Iterations: d.Iterations, KeyLen: len(d.Digest)}
}

// match returns which of the keys has this digest, or -1. The digests of all of
// them cost little more than that of one.
func (d *Digest) match(ctx context.Context, keys [][]byte) (right int, err error) {
	jobs := make([]kdf.Job, len(keys))
	for i, key := range keys {
		jobs[i] = d.job(key)
	}
	right = -1
	err = kdf.Derive(ctx, d.Hash, jobs, func(ready []kdf.Derived) error {
		for _, derived := range ready {
			if subtle.ConstantTimeCompare(derived.Key, d.Digest) == 1 {
				right = derived.Job
			}
		}
		return nil
	})
	return right, err
}

// checkNewPBKDF2 keeps what is written to what cryptsetup does. what is put in
// front of the parameter's name.
func checkNewPBKDF2(what, hash string, iterations int) error {
	newHash, err := hashes.New(hash)
	if err != nil {
		return fmt.Errorf("luks2: %w", err)
	}
	if size := newHash().Size(); size < minDigest {
		return luks.BadParam(what+"hash", "%s has %d bytes, %d are needed", hash, size, minDigest)
	}
	return luks.CheckIterations(what+"iterations", iterations)
}

func newSalt() []byte {
	salt := make([]byte, newSaltSize)
	rand.Read(salt)
	return salt
}

// freeNumber returns the least number below limit that no object has, or -1.
func freeNumber[T any](objects map[int]T, limit int) int {
	for number := range limit {
		if _, used := objects[number]; !used {
			return number
		}
	}
	return -1
}
