package bench

import (
	"fmt"
	"runtime"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/cpucycles"
)

const (
	mediumRun = 64 << 10
	longRun   = 1 << 20

	maxThreadCounts = 2 // one thread, and one for each core

	firstSector uint64 = 1 << 33
	sectorUnit         = 512 // bytes, what sector numbers count
)

var (
	sectorSizes = []int{512, 4096}

	sectorModes = []struct {
		mode, spec string
		keySize    int
		everyRun   bool // not only medium ones
	}{
		{"xts", "serpent-xts-plain64", 64, true},
		{"cbc", "serpent-cbc-essiv:sha256", 32, true},
		{"ecb", "serpent-ecb", 32, false},
		{"ctr", "serpent-ctr-plain64", 32, false},
		{"lrw", "serpent-lrw-benbi", 48, false},
	}

	sectorOperations = []sectorOperation{
		{"enc", (*modes.Sectors).Encrypt},
		{"dec", (*modes.Sectors).Decrypt},
	}
)

type sectorOperation struct {
	op  string
	run func(s *modes.Sectors, dst, src []byte, first uint64)
}

// sectorRun is how many bytes are handled at once, and in how many threads: in
// one, and then perhaps in another number.
type sectorRun struct {
	bytes   int
	threads []int
}

func sectorRuns(sectorSize int, every bool) []sectorRun {
	if !every {
		return []sectorRun{{mediumRun, []int{1}}}
	}
	threads := []int{1}
	if cores := runtime.GOMAXPROCS(0); cores > 1 {
		threads = append(threads, cores)
	}
	return []sectorRun{{sectorSize, []int{1}}, {mediumRun, []int{1}}, {longRun, threads}}
}

func sectorsContests(report *Report, o Options) ([]contest, error) {
	b := sectorsBench{report: report, only: o.Kernel, src: testBytes(longRun)}
	kernels := contestingKernels(o.Kernel)
	for range maxThreadCounts * len(kernels) {
		b.outputs = append(b.outputs, make([]byte, longRun))
	}
	var contests []contest
	for _, m := range sectorModes {
		for _, sectorSize := range sectorSizes {
			ciphers, wipe, err := sectorCiphers(m.spec, testBytes(m.keySize), sectorSize, kernels)
			if err != nil {
				return nil, err
			}
			for _, op := range sectorOperations {
				for _, run := range sectorRuns(sectorSize, m.everyRun) {
					contests = append(contests, b.contest(m.mode, op, run, ciphers))
				}
			}
			contests[len(contests)-1].close = func() error { wipe(); return nil }
		}
	}
	return contests, nil
}

// sectorsBench is what the contests have in common.
type sectorsBench struct {
	report  *Report
	only    serpent.Kernel
	src     []byte
	outputs [][]byte // one for each contestant, in every contest the same
}

// contest is one between ciphers that differ in their kernel, the first being
// Generic, each with every number of threads.
func (b *sectorsBench) contest(mode string, o sectorOperation, run sectorRun, ciphers []*modes.Sectors) contest {
	sectorSize := ciphers[0].SectorSize()
	c := contest{what: fmt.Sprintf("%s-%s of %d bytes in sectors of %d", mode, o.op, run.bytes, sectorSize)}
	for _, threads := range run.threads {
		for _, s := range ciphers {
			name := s.Kernel().String()
			if threads > 1 {
				name += fmt.Sprintf(" in %d threads", threads)
			}
			dst := b.outputs[len(c.contestants)][:run.bytes]
			c.contestants = append(c.contestants, contestant{name, o.shares(s, dst, b.src[:run.bytes], threads), dst})
		}
	}
	c.report = func(costs []cpucycles.Cost) {
		for i, cost := range costs {
			kernel, threads := ciphers[i%len(ciphers)].Kernel(), run.threads[i/len(ciphers)]
			if b.only != serpent.Auto && b.only != kernel {
				continue
			}
			generic := costs[i-i%len(ciphers)]
			cost.Cycles *= float64(threads)
			s := speedOf(run.bytes, cost, generic)
			b.report.Sectors = append(b.report.Sectors, SectorsResult{
				Suite: "sectors", Kernel: kernel.String(), Mode: mode, Op: o.op,
				SectorSize: sectorSize, Bytes: run.bytes, Threads: threads,
				BytesPerSecond: s.perSecond, CyclesPerByte: s.cyclesPerUnit, RatioToGeneric: s.ratio,
			})
		}
	}
	return c
}

// sectorCiphers returns one for each kernel.
func sectorCiphers(spec string, key []byte, sectorSize int, kernels []serpent.Kernel) (ciphers []*modes.Sectors, wipe func(), err error) {
	wipe = func() {
		for _, s := range ciphers {
			s.Wipe()
		}
	}
	for _, k := range kernels {
		s, err := modes.New(spec, key, sectorSize, k)
		if err != nil {
			wipe()
			return nil, nil, err
		}
		ciphers = append(ciphers, s)
	}
	return ciphers, wipe, nil
}

// shares divides the sectors of src into equal parts, or nearly so, one for each
// thread.
func (o sectorOperation) shares(s *modes.Sectors, dst, src []byte, threads int) []func() {
	var shares []func()
	sectors := len(src) / s.SectorSize()
	for i := range threads {
		from, to := i*sectors/threads*s.SectorSize(), (i+1)*sectors/threads*s.SectorSize()
		first := firstSector + uint64(from/sectorUnit)
		shares = append(shares, func() { o.run(s, dst[from:to], src[from:to], first) })
	}
	return shares
}
