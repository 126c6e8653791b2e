package cpucycles

import "sync"

// crew are the threads that share a work: the caller's, for the first function,
// and one for each of the others. They are started once, since that takes
// longer than many a call.
type crew struct {
	first repeated
	calls []chan int    // one for each of the others
	done  chan struct{} // by one of them
	all   sync.WaitGroup
}

func newCrew(functions []func()) *crew {
	c := &crew{first: repeat(functions[0]), done: make(chan struct{})}
	for _, f := range functions[1:] {
		calls, work := make(chan int), repeat(f)
		c.calls = append(c.calls, calls)
		c.all.Go(func() {
			for n := range calls {
				work(n)
				c.done <- struct{}{}
			}
		})
	}
	return c
}

// work returns when every thread has called its function so many times.
func (c *crew) work(calls int) {
	for _, other := range c.calls {
		other <- calls
	}
	c.first(calls)
	for range c.calls {
		<-c.done
	}
}

// dismiss ends the threads.
func (c *crew) dismiss() {
	for _, other := range c.calls {
		close(other)
	}
	c.all.Wait()
}
