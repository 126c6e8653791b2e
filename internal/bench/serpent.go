package bench

import (
	"fmt"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/cpucycles"
)

// The sizes of Linux's crypto/tcrypt.c.
var requestSizes = []int{16, 64, 256, 1024, 8192}

// engine is what a request of any mode needs, with one kernel.
type engine struct {
	data, tweak serpent.Cipher
	iv          [serpent.BlockSize]byte // or sector number, or first counter
	sectorTweak [serpent.BlockSize]byte // XTS
	blockTweaks []byte                  // LRW; they come from a table, not from the cipher
}

// operations are the columns of the table. Each does one request as
// cipher/modes does one sector.
var operations = []struct {
	mode, op string
	run      func(e *engine, dst, src []byte)
}{
	{"ecb", "enc", func(e *engine, dst, src []byte) { e.data.EncryptBlocks(dst, src) }},
	{"ecb", "dec", func(e *engine, dst, src []byte) { e.data.DecryptBlocks(dst, src) }},
	{"cbc", "enc", func(e *engine, dst, src []byte) { e.data.EncryptCBC(dst, src, e.iv[:]) }},
	{"cbc", "dec", func(e *engine, dst, src []byte) { e.data.DecryptCBC(dst, src, e.iv[:]) }},
	{"ctr", "enc", func(e *engine, dst, src []byte) { e.data.CryptCTR(dst, src, e.iv[:]) }},
	{"ctr", "dec", func(e *engine, dst, src []byte) { e.data.CryptCTR(dst, src, e.iv[:]) }},
	{"lrw", "enc", func(e *engine, dst, src []byte) { e.data.EncryptXEX(dst, src, e.blockTweaks[:len(src)]) }},
	{"lrw", "dec", func(e *engine, dst, src []byte) { e.data.DecryptXEX(dst, src, e.blockTweaks[:len(src)]) }},
	{"xts", "enc", func(e *engine, dst, src []byte) { e.data.EncryptXTS(dst, src, e.startTweak()) }},
	{"xts", "dec", func(e *engine, dst, src []byte) { e.data.DecryptXTS(dst, src, e.startTweak()) }},
}

// startTweak encrypts the sector number, as XTS does for each sector.
func (e *engine) startTweak() []byte {
	e.tweak.EncryptBlocks(e.sectorTweak[:], e.iv[:])
	return e.sectorTweak[:]
}

func newEngine(k serpent.Kernel) (*engine, error) {
	e := &engine{blockTweaks: testBytes(requestSizes[len(requestSizes)-1])}
	key := testBytes(64)
	if err := e.data.Init(key[:32], k); err != nil {
		return nil, err
	}
	if err := e.tweak.Init(key[32:], k); err != nil {
		return nil, err
	}
	copy(e.iv[:], key)
	return e, nil
}

// contestingKernels returns those that take part when only one is reported, or,
// with Auto, all: the first is Generic, with which they are compared.
func contestingKernels(only serpent.Kernel) []serpent.Kernel {
	switch only {
	case serpent.Auto:
		return serpent.Kernels()
	case serpent.Generic:
		return []serpent.Kernel{serpent.Generic}
	}
	return []serpent.Kernel{serpent.Generic, only}
}

func serpentContests(report *Report, o Options) ([]contest, error) {
	kernels := contestingKernels(o.Kernel)
	var engines []*engine
	for _, k := range kernels {
		e, err := newEngine(k)
		if err != nil {
			return nil, err
		}
		engines = append(engines, e)
	}
	var contests []contest
	for _, op := range operations {
		for _, size := range requestSizes {
			c := contest{what: fmt.Sprintf("serpent %s-%s of %d bytes", op.mode, op.op, size)}
			src := testBytes(size)
			for i, k := range kernels {
				e, dst := engines[i], make([]byte, size)
				c.contestants = append(c.contestants, contestant{k.String(), alone(func() { op.run(e, dst, src) }), dst})
			}
			c.report = func(costs []cpucycles.Cost) {
				for i, k := range kernels {
					if o.Kernel != serpent.Auto && o.Kernel != k {
						continue
					}
					s := speedOf(size, costs[i], costs[0])
					report.Serpent = append(report.Serpent, SerpentResult{
						Suite: "serpent", Kernel: k.String(), Mode: op.mode, Op: op.op, Bytes: size,
						BytesPerSecond: s.perSecond, CyclesPerByte: s.cyclesPerUnit, RatioToGeneric: s.ratio,
					})
				}
			}
			contests = append(contests, c)
		}
	}
	return contests, nil
}
