package modes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"serpcrypt/cipher/serpent"
)

// BenchmarkRun compares a run of 64 KiB through Sectors with the cipher call
// that does the same work on ready tweaks or IVs. The two take turns, and
// their medians count, so that a busy machine slows both alike.
func BenchmarkRun(b *testing.B) {
	const size = 64 << 10
	data := make([]byte, size)
	tweaks := make([]byte, size) // one for each block
	for _, spec := range oneSpecPerMode {
		for _, kernel := range serpent.Kernels() {
			for _, sectorSize := range []int{512, 4096} {
				s := newSectors(b, spec, longestKey(b, spec), sectorSize, kernel)
				c := &s.keys.data
				ivs := tweaks[:size/sectorSize*ivSize]
				var encrypt, decrypt func()
				switch s.mode {
				case modeECB:
					encrypt = func() { c.EncryptBlocks(data, data) }
					decrypt = func() { c.DecryptBlocks(data, data) }
				case modeCBC:
					encrypt = func() { c.EncryptCBC(data, data, ivs) }
					decrypt = func() { c.DecryptCBC(data, data, ivs) }
				case modeCTR:
					encrypt = func() { c.CryptCTR(data, data, ivs) }
					decrypt = encrypt
				case modeLRW:
					encrypt = func() { c.EncryptXEX(data, data, tweaks) }
					decrypt = func() { c.DecryptXEX(data, data, tweaks) }
				case modeXTS:
					encrypt = func() { c.EncryptXTS(data, data, ivs) }
					decrypt = func() { c.DecryptXTS(data, data, ivs) }
				}
				name := fmt.Sprintf("%s/%v/sector=%d", spec, kernel, sectorSize)
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

func compare(b *testing.B, size int, bare, sectors func()) {
	var bareTimes, sectorsTimes []time.Duration
	for b.Loop() {
		start := time.Now()
		bare()
		middle := time.Now()
		sectors()
		bareTimes = append(bareTimes, middle.Sub(start))
		sectorsTimes = append(sectorsTimes, time.Since(middle))
	}
	median := func(times []time.Duration) float64 {
		slices.Sort(times)
		return times[len(times)/2].Seconds()
	}
	bareTime, sectorsTime := median(bareTimes), median(sectorsTimes)
	b.ReportMetric(float64(size)/1e6/bareTime, "bare-MB/s")
	b.ReportMetric(float64(size)/1e6/sectorsTime, "sectors-MB/s")
	b.ReportMetric(100*(sectorsTime/bareTime-1), "overhead-%")
}
