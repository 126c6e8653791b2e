package main

// #include "sha1.h"
import "C"

import (
	"context"
	"crypto/rand"
	stdsha1 "crypto/sha1"
	"hash"
	"time"

	"serpcrypt/hash/sha1"
)

// sha1Task is the hashing of as many messages as count says, a power of two, at
// most 256: one after another or, if each call is to wait for the last, always
// that which the first byte of the last digest chooses.
type sha1Task struct {
	column      string
	size, count int
	waiting     bool
}

// Their messages fit into the caches.
var sha1Tasks = []sha1Task{
	{column: "8192B", size: 8192, count: 4},
	{column: "64B", size: 64, count: 256},
	{column: "64B-waiting", size: 64, count: 256, waiting: true},
}

// message returns that for digest i, when last is the first byte of the last
// one, or 0.
func (t sha1Task) message(messages []byte, i int, last byte) []byte {
	if t.waiting {
		i = int(last) & (t.count - 1)
	}
	return messages[i*t.size:][:t.size]
}

// sha1Peer writes the digests of messages, one after another.
type sha1Peer struct {
	name string
	run  func(t sha1Task, sums, messages []byte)
}

// sha1Peers begins with this program's kernels, the portable ones first.
func sha1Peers() []sha1Peer {
	var peers []sha1Peer
	for _, k := range sha1.Kernels() {
		peers = append(peers, sha1Peer{"serpcrypt " + k.String(), writeEach(sha1.NewKernel(k))})
	}
	return append(peers,
		sha1Peer{"serpcrypt " + sha1.Default().String() + ", Sum", sumEach},
		sha1Peer{"OpenSSL", inC(func(sums *C.uint8_t, m C.struct_messages) C.int {
			return C.openssl_digests(sums, m)
		})},
		sha1Peer{"Nettle", inC(func(sums *C.uint8_t, m C.struct_messages) C.int {
			return C.nettle_digests(sums, m)
		})},
		sha1Peer{"libgcrypt", inC(func(sums *C.uint8_t, m C.struct_messages) C.int {
			return C.gcrypt_digests(sums, m)
		})},
		sha1Peer{"Go crypto/sha1", writeEach(stdsha1.New())},
		sha1Peer{"Go crypto/sha1, Sum", stdSumEach},
	)
}

func writeEach(h hash.Hash) func(t sha1Task, sums, messages []byte) {
	return func(t sha1Task, sums, messages []byte) {
		last := byte(0)
		for i := range t.count {
			h.Reset()
			h.Write(t.message(messages, i, last))
			sum := h.Sum(sums[i*sha1.Size : i*sha1.Size])
			last = sum[0]
		}
	}
}

// sumEach calls Sum by its name, as programs do, since the compiler then makes a
// shorter way of it.
func sumEach(t sha1Task, sums, messages []byte) {
	last := byte(0)
	for i := range t.count {
		sum := sha1.Sum(t.message(messages, i, last))
		last = sum[0]
		copy(sums[i*sha1.Size:], sum[:])
	}
}

// stdSumEach is as sumEach.
func stdSumEach(t sha1Task, sums, messages []byte) {
	last := byte(0)
	for i := range t.count {
		sum := stdsha1.Sum(t.message(messages, i, last))
		last = sum[0]
		copy(sums[i*sha1.Size:], sum[:])
	}
}

func inC(run func(sums *C.uint8_t, m C.struct_messages) C.int) func(t sha1Task, sums, messages []byte) {
	return func(t sha1Task, sums, messages []byte) {
		if run(bytesOf(sums), C.struct_messages{
			bytes: bytesOf(messages), size: C.size_t(t.size), count: C.size_t(t.count), waiting: intOf(t.waiting),
		}) == 0 {
			panic("a library's SHA-1 fails")
		}
	}
}

func sha1Contest(t sha1Task, peers []sha1Peer) *contest {
	c := &contest{column: t.column, what: "sha1 of " + t.column, units: t.size * t.count}
	messages := make([]byte, t.size*t.count)
	rand.Read(messages)
	for _, p := range peers {
		sums := make([]byte, t.count*sha1.Size)
		c.contestants = append(c.contestants, contestant{
			name: p.name, run: func() { p.run(t, sums, messages) }, output: sums,
		})
	}
	return c
}

func compareSHA1(ctx context.Context, each time.Duration) ([]result, error) {
	var results []result
	for _, t := range sha1Tasks {
		more, err := sha1Contest(t, sha1Peers()).compare(ctx, each)
		if err != nil {
			return nil, err
		}
		results = append(results, more...)
	}
	return results, nil
}
