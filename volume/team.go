package volume

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// partSize is what a long request is divided into, at multiples of it in the
// volume: so much work that it does not show that a thread has to be woken.
const partSize = 64 << 10

// team divides long requests among cores that have nothing else to do. A single
// program that reads or writes waits for each request before it makes the next,
// so without that only one core would ever work.
type team struct {
	cores   int
	working atomic.Int32 // requests, and members who are called to help with one
	started sync.Once
	tasks   chan *task // for members who wait for one
	spare   chan *task // as many as can be under way
}

func newTeam() *team {
	cores := runtime.GOMAXPROCS(0)
	return &team{cores: cores, tasks: make(chan *task), spare: make(chan *task, cores)}
}

// start makes as many members as could ever have somebody else to help.
func (t *team) start() {
	for range t.cores {
		t.spare <- &task{done: make(chan struct{}, 1)}
	}
	for range t.cores - 1 {
		go func() {
			for k := range t.tasks {
				if k.work() {
					k.done <- struct{}{}
				}
				t.working.Add(-1)
			}
		}()
	}
}

// end sends the members away. Nobody may ask for help any more.
func (t *team) end() { close(t.tasks) }

// do reads or writes all of p, and returns how much from its beginning is done.
func (t *team) do(v *Volume, p []byte, off int64, writes bool) (int, error) {
	idle := t.cores - int(t.working.Add(1))
	defer t.working.Add(-1)
	if len(p) < 2*partSize || idle <= 0 {
		return v.transfer(p, off, writes)
	}
	t.started.Do(t.start)
	k := <-t.spare
	defer func() { t.spare <- k }()
	k.begin(v, p, off, writes)
	for range idle {
		if !t.call(k) {
			break
		}
	}
	if last := k.work(); !last {
		<-k.done
	}
	return k.end()
}

// call has a member help with a task, unless all of them are called already.
func (t *team) call(k *task) bool {
	t.working.Add(1)
	select {
	case t.tasks <- k:
		return true
	default:
		t.working.Add(-1)
		return false
	}
}

// task is a request that several work on. It is over when all parts are done,
// also if a member who was called has not come by then: it finds no part to
// take, and leaves all else alone, as that may be of the next request already.
type task struct {
	untaken atomic.Int64  // parts; less than none if somebody looked in vain
	undone  atomic.Int64  // parts
	done    chan struct{} // if the last part was done by a member

	// These stay as they are while there are parts undone.
	volume *Volume
	p      []byte
	off    int64
	writes bool
	parts  int64

	mu        sync.Mutex
	doneBytes int   // from the start of p, up to the first failure
	err       error // of that
}

func (k *task) begin(v *Volume, p []byte, off int64, writes bool) {
	k.volume, k.p, k.off, k.writes = v, p, off, writes
	k.parts = (off+int64(len(p))-1)/partSize - off/partSize + 1
	k.doneBytes, k.err = len(p), nil
	k.undone.Store(k.parts)
	k.untaken.Store(k.parts)
}

// end returns what became of the request, of which nothing is kept.
func (k *task) end() (int, error) {
	n, err := k.doneBytes, k.err
	k.volume, k.p, k.err = nil, nil, nil
	return n, err
}

// work does parts until all are taken, the first ones first. last tells that
// none is undone after those that this worker did.
func (k *task) work() (last bool) {
	for {
		left := k.untaken.Add(-1)
		if left < 0 {
			return last
		}
		from, to := k.part(k.parts - 1 - left)
		if n, err := k.volume.transfer(k.p[from:to], k.off+int64(from), k.writes); err != nil {
			k.fail(from+n, err)
		}
		last = k.undone.Add(-1) == 0
	}
}

// part returns where in p a part lies.
func (k *task) part(i int64) (from, to int) {
	start := (k.off/partSize + i) * partSize
	from = int(max(start, k.off) - k.off)
	to = int(min(start+partSize, k.off+int64(len(k.p))) - k.off)
	return from, to
}

func (k *task) fail(doneBytes int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if doneBytes < k.doneBytes {
		k.doneBytes, k.err = doneBytes, err
	}
}
