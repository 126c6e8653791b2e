package bench

import (
	"context"
	stdpbkdf2 "crypto/pbkdf2"
	stdsha1 "crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"

	"serpcrypt/cipher/serpent"
	"serpcrypt/hash/sha1"
	"serpcrypt/internal/cpucycles"
	"serpcrypt/kdf"
)

const (
	stdlibKernel = "stdlib"

	// Enough that what a call costs beside its iterations does not show.
	kdfIterations = 2000
)

var (
	keySizes  = []int{20, 32, 64}
	kdfHashes = []struct {
		name   string
		kernel string // of ours
		std    func() hash.Hash
	}{
		{"sha1", "", stdsha1.New}, // the chosen kernel
		{"sha256", stdlibKernel, sha256.New},
		{"sha512", stdlibKernel, sha512.New},
	}
)

func kdfContests(report *Report, _ serpent.Kernel) ([]contest, error) {
	password, salt := testBytes(16), testBytes(32)
	var contests []contest
	for _, h := range kdfHashes {
		if h.kernel == "" {
			h.kernel = sha1.Default().String()
		}
		for _, size := range keySizes {
			theirs, ours := make([]byte, size), make([]byte, size)
			contests = append(contests, contest{
				what: fmt.Sprintf("pbkdf2 with %s for %d bytes", h.name, size),
				// An error leaves zeros, which do not pass.
				contestants: []contestant{
					{"crypto/pbkdf2", alone(func() {
						key, _ := stdpbkdf2.Key(h.std, string(password), salt, kdfIterations, size)
						copy(theirs, key)
					}), theirs},
					{"kdf", alone(func() {
						key, err := kdf.PBKDF2(context.Background(), h.name, kdf.Job{Password: password, Salt: salt, Iterations: kdfIterations, KeyLen: size})
						if err == nil {
							copy(ours, key.Bytes())
							key.Close()
						}
					}), ours},
				},
				report: func(costs []cpucycles.Cost) {
					add := func(kernel string, cost cpucycles.Cost) {
						s := speedOf(kdfIterations, cost, costs[0])
						report.KDF = append(report.KDF, KDFResult{
							Suite: "kdf", Hash: h.name, Kernel: kernel, Bytes: size,
							IterationsPerSecond: s.perSecond, RatioToStdlib: s.ratio,
						})
					}
					if h.kernel != stdlibKernel {
						add(stdlibKernel, costs[0])
					}
					add(h.kernel, costs[1])
				},
			})
		}
	}
	return contests, nil
}
