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
