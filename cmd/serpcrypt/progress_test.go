package main

import (
	"testing"
	"time"
)

func TestProgressLine(t *testing.T) {
	for _, test := range []struct {
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 100 << 20, 2 * time.Second, "filling:   0%, 0 bytes of 100 MiB, 0 bytes/s"},
		{50 << 20, 100 << 20, 2 * time.Second, "filling:  50%, 50 MiB of 100 MiB, 25 MiB/s, 2s left"},
		{100 << 20, 100 << 20, 4 * time.Second, "filling: 100%, 100 MiB of 100 MiB, 25 MiB/s"},
		{50 << 20, 0, 2 * time.Second, "filling: 50 MiB, 25 MiB/s"},
	} {
		if got := progressLine("filling", test.done, test.total, test.elapsed); got != test.want {
			t.Errorf("progressLine(%d, %d, %v) = %q, want %q", test.done, test.total, test.elapsed, got, test.want)
		}
	}
}

func TestTimeLeft(t *testing.T) {
	for _, test := range []struct {
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 4, time.Second, ""},
		{1, 4, 2 * time.Second, ", 6s left"},
		{4, 4, 8 * time.Second, ""},
	} {
		if got := timeLeft(test.done, test.total, test.elapsed); got != test.want {
			t.Errorf("timeLeft(%d, %d, %v) = %q, want %q", test.done, test.total, test.elapsed, got, test.want)
		}
	}
}
