package cpucycles

import (
	"runtime"
	"testing"
	"time"
)

// Sleeping is no work.
func TestThreadTimeIsProcessorTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, start := ThreadTime(), time.Now()
	time.Sleep(200 * time.Millisecond)
	multiplyChain(1000)
	if used, passed := ThreadTime()-before, time.Since(start); used <= 0 || used >= passed {
		t.Errorf("used %v of %v", used, passed)
	}
}

// What other threads do counts for the process, and sleeping does not.
func TestProcessTimeIsOfAllThreads(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, thread := ProcessTime(), ThreadTime()
	done := make(chan time.Duration)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		before := ThreadTime()
		multiplyChain(1_000_000)
		done <- ThreadTime() - before
	}()
	other := <-done
	if all, own := ProcessTime()-process, ThreadTime()-thread; all < own+other {
		t.Errorf("the process used %v, its threads %v and %v", all, own, other)
	}
	before, start := ProcessTime(), time.Now()
	time.Sleep(200 * time.Millisecond)
	if used, passed := ProcessTime()-before, time.Since(start); used >= passed {
		t.Errorf("used %v of %v", used, passed)
	}
}
