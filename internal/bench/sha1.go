package bench

import (
	stdsha1 "crypto/sha1"
	"fmt"
	"hash"

	"serpcrypt/cipher/serpent"
	"serpcrypt/hash/sha1"
	"serpcrypt/internal/cpucycles"
)

var sha1Kernels = []struct {
	name string
	new  func() hash.Hash
}{{"stdlib", stdsha1.New}, {"generic", sha1.New}}

func sha1Contests(report *Report, _ serpent.Kernel) ([]contest, error) {
	var contests []contest
	for _, size := range requestSizes {
		c := contest{what: fmt.Sprintf("sha1 of %d bytes", size)}
		message := testBytes(size)
		for _, k := range sha1Kernels {
			h, sum := k.new(), make([]byte, sha1.Size)
			c.contestants = append(c.contestants, contestant{k.name, alone(func() {
				h.Reset()
				h.Write(message)
				h.Sum(sum[:0])
			}), sum})
		}
		c.report = func(costs []cpucycles.Cost) {
			for i, k := range sha1Kernels {
				s := speedOf(size, costs[i], costs[0])
				report.SHA1 = append(report.SHA1, SHA1Result{
					Suite: "sha1", Kernel: k.name, Bytes: size, UpdateBytes: size,
					BytesPerSecond: s.perSecond, CyclesPerByte: s.cyclesPerUnit, RatioToStdlib: s.ratio,
				})
			}
		}
		contests = append(contests, c)
	}
	return contests, nil
}
