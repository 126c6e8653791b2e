package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// untilDone does work that nothing can interrupt, and leaves it to itself when
// ctx ends before: then the error is the cause of that.
func untilDone(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// untilSignal returns a context that the first SIGINT, SIGTERM or SIGHUP
// cancels, with a *signalError as its cause. A second one ends the program.
func untilSignal() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // by nohup, or a shell's background job
			signal.Notify(signals, s)
		}
	}
	go func() {
		s, ok := <-signals
		if ok {
			signal.Stop(signals)
			cancel(&signalError{s.(syscall.Signal)})
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// signalError is why a context ended when a signal asked for it.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "interrupted by " + unix.SignalName(e.signal) }
