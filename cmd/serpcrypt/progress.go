package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	progressAfter = time.Second            // shorter work shows nothing
	progressEvery = 200 * time.Millisecond // how often the line is written
)

// progress is one line on the terminal that says how far long work has come.
// Its methods may be called from any goroutine.
type progress struct {
	mu            sync.Mutex
	what          string
	start, last   time.Time
	shown, silent bool
}

// newProgress starts the clock for work described by what ("filling").
func newProgress(what string) *progress {
	return &progress{what: what, start: time.Now(), silent: screen.quiet || !isTerminal(os.Stderr)}
}

// update tells that done of total bytes are through. total <= 0 is unknown.
func (p *progress) update(done, total int64) {
	p.show(func(elapsed time.Duration) string { return progressLine(p.what, done, total, elapsed) })
}

// step tells that done of total parts that take equally long are through.
func (p *progress) step(done, total int) {
	p.show(func(elapsed time.Duration) string {
		return fmt.Sprintf("%s: %3d%%%s", p.what, percent(int64(done), int64(total)), timeLeft(int64(done), int64(total), elapsed))
	})
}

// show writes the line if it is time for that.
func (p *progress) show(line func(elapsed time.Duration) string) {
	if p.silent {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	elapsed := now.Sub(p.start)
	if elapsed < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprintf(screen.err, "\r\x1b[K%s", line(elapsed))
}

// finish removes the line.
func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(screen.err, "\r\x1b[K")
	}
	p.silent = true
}

// progressLine says percent, bytes, rate and time left.
func progressLine(what string, done, total int64, elapsed time.Duration) string {
	rate := float64(done) / elapsed.Seconds()
	if total <= 0 {
		return fmt.Sprintf("%s: %s, %s/s", what, formatSize(done), formatSize(int64(rate)))
	}
	return fmt.Sprintf("%s: %3d%%, %s of %s, %s/s%s", what, percent(done, total), formatSize(done), formatSize(total),
		formatSize(int64(rate)), timeLeft(done, total, elapsed))
}

// timeLeft is the end of the line, or nothing where it cannot be known.
func timeLeft(done, total int64, elapsed time.Duration) string {
	if done <= 0 || done >= total {
		return ""
	}
	left := time.Duration(float64(total-done) / float64(done) * float64(elapsed))
	return ", " + left.Round(time.Second).String() + " left"
}

func percent(done, total int64) int64 {
	return int64(float64(done) / float64(total) * 100)
}
