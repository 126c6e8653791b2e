package main

// #include "sha1.h"
import "C"

import (
	"context"
	stdpbkdf2 "crypto/pbkdf2"
	"crypto/rand"
	stdsha1 "crypto/sha1"
	"time"

	"serpcrypt/hash/sha1"
	"serpcrypt/kdf"
)

// Enough that what a call costs beside its iterations does not show.
const pbkdf2Iterations = 10000

// pbkdf2Task is the derivation of one key for each of the key slots.
type pbkdf2Task struct {
	column        string
	keyLen, slots int
}

var pbkdf2Tasks = []pbkdf2Task{{"20B", 20, 1}, {"32B", 32, 1}, {"64B", 64, 1}, {"8x64B", 64, 8}}

// jobs are of the same password, each with a salt of its own.
func (t pbkdf2Task) jobs() []kdf.Job {
	password := make([]byte, 16)
	rand.Read(password)
	jobs := make([]kdf.Job, t.slots)
	for i := range jobs {
		jobs[i] = kdf.Job{Password: password, Salt: make([]byte, 32), Iterations: pbkdf2Iterations, KeyLen: t.keyLen}
		rand.Read(jobs[i].Salt)
	}
	return jobs
}

// pbkdf2Peer does jobs with keys of one length, and writes the keys in a row.
type pbkdf2Peer struct {
	name   string
	derive func(keys []byte, jobs []kdf.Job)
}

// pbkdf2Peers begins with this program's kernels, the portable one first. All
// the others know nothing better than one key after another.
func pbkdf2Peers() []pbkdf2Peer {
	var peers []pbkdf2Peer
	for _, k := range append(sha1.ChainKernels(), sha1.AutoChains) {
		peers = append(peers, pbkdf2Peer{"serpcrypt " + k.String(), sideBySide(k)})
	}
	return append(peers,
		pbkdf2Peer{"OpenSSL", inTurn(func(key []byte, job kdf.Job) {
			succeed(C.openssl_key(bytesOf(key), C.size_t(len(key)), derivation(job)))
		})},
		pbkdf2Peer{"Nettle", inTurn(func(key []byte, job kdf.Job) {
			succeed(C.nettle_key(bytesOf(key), C.size_t(len(key)), derivation(job)))
		})},
		pbkdf2Peer{"libgcrypt", inTurn(func(key []byte, job kdf.Job) {
			succeed(C.gcrypt_key(bytesOf(key), C.size_t(len(key)), derivation(job)))
		})},
		pbkdf2Peer{"Go crypto/pbkdf2", inTurn(func(key []byte, job kdf.Job) {
			derived, err := stdpbkdf2.Key(stdsha1.New, string(job.Password), job.Salt, job.Iterations, job.KeyLen)
			if err != nil {
				panic(err)
			}
			copy(key, derived)
		})},
	)
}

func sideBySide(k sha1.ChainKernel) func(keys []byte, jobs []kdf.Job) {
	return func(keys []byte, jobs []kdf.Job) {
		err := kdf.DeriveSHA1(context.Background(), k, jobs, func(ready []kdf.Derived) error {
			for _, d := range ready {
				copy(keys[d.Job*len(d.Key):], d.Key)
			}
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
}

func inTurn(derive func(key []byte, job kdf.Job)) func(keys []byte, jobs []kdf.Job) {
	return func(keys []byte, jobs []kdf.Job) {
		for i, job := range jobs {
			derive(keys[i*job.KeyLen:][:job.KeyLen], job)
		}
	}
}

func derivation(job kdf.Job) C.struct_derivation {
	return C.struct_derivation{
		password: bytesOf(job.Password), password_size: C.size_t(len(job.Password)),
		salt: bytesOf(job.Salt), salt_size: C.size_t(len(job.Salt)),
		iterations: C.unsigned(job.Iterations),
	}
}

func succeed(succeeded C.int) {
	if succeeded == 0 {
		panic("a library's PBKDF2 fails")
	}
}

func pbkdf2Contest(t pbkdf2Task, peers []pbkdf2Peer) *contest {
	c := &contest{column: t.column, what: "pbkdf2 for " + t.column, units: pbkdf2Iterations}
	jobs := t.jobs()
	for _, p := range peers {
		keys := make([]byte, t.slots*t.keyLen)
		c.contestants = append(c.contestants, contestant{
			name: p.name, run: func() { p.derive(keys, jobs) }, output: keys,
		})
	}
	return c
}

func comparePBKDF2(ctx context.Context, each time.Duration) ([]result, error) {
	var results []result
	for _, t := range pbkdf2Tasks {
		more, err := pbkdf2Contest(t, pbkdf2Peers()).compare(ctx, each)
		if err != nil {
			return nil, err
		}
		results = append(results, more...)
	}
	return results, nil
}
