package luks1

import (
	"context"
	"crypto/rand"
	"crypto/subtle"

	"serpcrypt/kdf"
	"serpcrypt/volume/luks"
)

// digestJob is the derivation of the volume key's digest.
func (h *Header) digestJob(key []byte) kdf.Job {
	return kdf.Job{Password: key, Salt: h.DigestSalt[:], Iterations: int(h.DigestIterations), KeyLen: DigestSize}
}

// SetDigest records the digest of the volume key, unless ctx is done before.
func (h *Header) SetDigest(ctx context.Context, key []byte, iterations int) error {
	if err := luks.CheckIterations("digest iterations", iterations); err != nil {
		return err
	}
	rand.Read(h.DigestSalt[:])
	h.DigestIterations = uint32(iterations)
	digest, err := kdf.PBKDF2(ctx, h.Hash.String(), h.digestJob(key))
	if err != nil {
		return err
	}
	defer digest.Close()
	copy(h.Digest[:], digest.Bytes())
	return nil
}

// CheckKey returns luks.ErrMismatch if key is not the volume key, and the error of
// ctx if that is done before this is known.
func (h *Header) CheckKey(ctx context.Context, key []byte) error {
	if len(key) != int(h.KeyBytes) {
		return luks.ErrMismatch
	}
	right, err := h.checkKeys(ctx, [][]byte{key})
	if err == nil && right < 0 {
		return luks.ErrMismatch
	}
	return err
}

// checkKeys returns which of the keys, all of the right length, is the volume
// key, or -1. The digests of all of them cost little more than that of one.
func (h *Header) checkKeys(ctx context.Context, keys [][]byte) (right int, err error) {
	jobs := make([]kdf.Job, len(keys))
	for i, key := range keys {
		jobs[i] = h.digestJob(key)
	}
	right = -1
	err = kdf.Derive(ctx, h.Hash.String(), jobs, func(ready []kdf.Derived) error {
		for _, d := range ready {
			if subtle.ConstantTimeCompare(d.Key, h.Digest[:]) == 1 {
				right = d.Job
			}
		}
		return nil
	})
	return right, err
}
