package volume

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// chunkSize is what long work over a whole volume is divided into, in bytes.
const chunkSize = 1 << 20

// Progress is told how many bytes of all are done, or of -1 if nobody knows
// how many there will be. It is called often, and never by two at a time.
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

func (m *progressMeter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += int64(n)
	if m.report != nil {
		m.report(m.done, m.total)
	}
}

// eachChunk divides size bytes among all cores. Each of them makes a worker
// and has it do one chunk after the other, n bytes from off, until all are
// done, one fails, or ctx is done.
func eachChunk(ctx context.Context, size int64, progress Progress, newWorker func() func(off int64, n int) error) error {
	meter := newProgressMeter(progress, size)
	var taken atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			work := newWorker()
			for {
				off := taken.Add(chunkSize) - chunkSize
				if off >= size {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				n := int(min(chunkSize, size-off))
				if err := work(off, n); err != nil {
					return err
				}
				meter.add(n)
			}
		})
	}
	return group.Wait()
}
