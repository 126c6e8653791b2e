package volume

import (
	"context"
	"iter"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// chunkSize is what long work over a whole volume is divided into, in bytes.
const chunkSize = 1 << 20

// Progress is told how many bytes of all are done. It is called often, and
// never by two at a time.
type Progress func(done, total int64)

// progressMeter adds up for a Progress, which may be nil.
type progressMeter struct {
	mu          sync.Mutex
	report      Progress
	done, total int64
}

func newProgressMeter(report Progress, total int64) *progressMeter {
	m := &progressMeter{report: report, total: total}
	m.add(0)
	return m
}

func (m *progressMeter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
	if m.report != nil {
		m.report(m.done, m.total)
	}
}

// byteRanges are in order and do not overlap. An error is the end of them.
type byteRanges = iter.Seq2[byteRange, error]

func oneRange(from, to int64) byteRanges {
	return func(yield func(byteRange, error) bool) { yield(byteRange{from, to}, nil) }
}

// eachChunk divides ranges among all cores, at multiples of chunkSize. Each core
// makes a worker and has it do one chunk after the other, n bytes from off, until
// all are done, one fails, or ctx is done.
func eachChunk(ctx context.Context, ranges byteRanges, meter *progressMeter, newWorker func() func(off int64, n int) error) error {
	next, stop := iter.Pull2(chunksOf(ranges))
	defer stop()
	var taking sync.Mutex
	take := func() (chunk byteRange, err error, more bool) {
		taking.Lock()
		defer taking.Unlock()
		return next()
	}
	group, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			work := newWorker()
			for {
				if err := ctx.Err(); err != nil {
					return err
				}
				chunk, err, more := take()
				if err != nil || !more {
					return err
				}
				n := chunk.to - chunk.from
				if err := work(chunk.from, int(n)); err != nil {
					return err
				}
				meter.add(n)
			}
		})
	}
	return group.Wait()
}

// chunksOf cuts ranges at multiples of chunkSize.
func chunksOf(ranges byteRanges) byteRanges {
	return func(yield func(byteRange, error) bool) {
		for r, err := range ranges {
			if err != nil {
				yield(byteRange{}, err)
				return
			}
			for r.from < r.to {
				to := min(r.to, (r.from/chunkSize+1)*chunkSize)
				if !yield(byteRange{r.from, to}, nil) {
					return
				}
				r.from = to
			}
		}
	}
}
