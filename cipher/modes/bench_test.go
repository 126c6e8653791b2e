package modes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/cpucycles"
)

// BenchmarkRun compares a run through Sectors, a lone sector being the
// shortest, with the cipher call that does the same work on ready tweaks or
// IVs.
func BenchmarkRun(b *testing.B) {
	const maxSize = 1 << 20
	data := make([]byte, maxSize)
	tweaks := make([]byte, maxSize) // one for each block
	for _, spec := range serpentSpecs {
		for _, kernel := range serpent.Kernels() {
			for _, sectorSize := range []int{512, 4096} {
				s := newSectors(b, spec, longestKey(b, spec), sectorSize, kernel)
				for _, size := range []int{sectorSize, 64 << 10, maxSize} {
					data, tweaks := data[:size], tweaks[:size]
					encrypt, decrypt := bareCalls(s, data, tweaks)
					name := fmt.Sprintf("%s/%v/sector=%d/bytes=%d", spec, kernel, sectorSize, size)
					b.Run(name+"/enc", func(b *testing.B) {
						compare(b, size, encrypt, func() { s.Encrypt(data, data, 1) })
					})
					b.Run(name+"/dec", func(b *testing.B) {
						compare(b, size, decrypt, func() { s.Decrypt(data, data, 1) })
					})
				}
			}
		}
	}
}

// bareCalls returns the calls of the cipher that do the work on the blocks of
// data. tweaks is as long, more than some modes need.
func bareCalls(s *Sectors, data, tweaks []byte) (encrypt, decrypt func()) {
	c, ivs := &s.keys.data, tweaks[:len(data)/s.sectorSize*ivSize]
	switch s.mode {
	case modeECB:
		return func() { c.EncryptBlocks(data, data) }, func() { c.DecryptBlocks(data, data) }
	case modeCBC:
		return func() { c.EncryptCBC(data, data, ivs) }, func() { c.DecryptCBC(data, data, ivs) }
	case modeCTR:
		return func() { c.CryptCTR(data, data, ivs) }, func() { c.CryptCTR(data, data, ivs) }
	case modeLRW:
		return func() { c.EncryptXEX(data, data, tweaks) }, func() { c.DecryptXEX(data, data, tweaks) }
	case modeXTS:
		return func() { c.EncryptXTS(data, data, ivs) }, func() { c.DecryptXTS(data, data, ivs) }
	}
	panic("unknown mode")
}

// compare reports the medians of rounds in which the two take turns.
func compare(b *testing.B, size int, bare, sectors func()) {
	const round = 10 * time.Millisecond
	var bareCosts, sectorsCosts, overheads []float64
	for b.Loop() {
		costs, err := cpucycles.Measure(b.Context(), round, bare, sectors)
		if err != nil {
			b.Fatal(err)
		}
		bareCosts = append(bareCosts, costs[0].Cycles/float64(size))
		sectorsCosts = append(sectorsCosts, costs[1].Cycles/float64(size))
		overheads = append(overheads, 100*(costs[1].Cycles/costs[0].Cycles-1))
	}
	median := func(values []float64) float64 {
		slices.Sort(values)
		return values[len(values)/2]
	}
	b.ReportMetric(0, "ns/op") // of a round, which says nothing
	b.ReportMetric(median(bareCosts), "bare-cycles/B")
	b.ReportMetric(median(sectorsCosts), "sectors-cycles/B")
	b.ReportMetric(median(overheads), "overhead-%")
}
