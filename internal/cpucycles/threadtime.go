package cpucycles

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the processor time that the current thread has used. Two
// readings can be compared between runtime.LockOSThread and UnlockOSThread.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		// Every Linux since 2.6.12 has this clock, and there is no argument
		// that could be wrong.
		panic("cpucycles: no clock of the thread's processor time: " + err.Error())
	}
	return time.Duration(t.Nano())
}
