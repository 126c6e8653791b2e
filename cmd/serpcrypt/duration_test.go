package main

import (
	"testing"
	"time"
)

func TestFormatAbout(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                       "0.0 ms",
		234 * time.Microsecond:  "0.2 ms",
		98 * time.Millisecond:   "98 ms",
		1004 * time.Millisecond: "1.0 s",
		9260 * time.Millisecond: "9.3 s",
		61 * time.Second:        "61 s",
		260 * time.Second:       "4 minutes",
		5 * time.Hour:           "5 hours",
		100 * time.Hour:         "4 days",
	} {
		if got := formatAbout(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
