package cpucycles

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the processor time that the current thread has used. Two
// readings can be compared between runtime.LockOSThread and UnlockOSThread.
func ThreadTime() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// ProcessTime returns the processor time that all threads have used together.
func ProcessTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		// Every Linux since 2.6.12 has these clocks, and there is no argument
		// that could be wrong.
		panic("cpucycles: no clock of processor time: " + err.Error())
	}
	return time.Duration(t.Nano())
}
