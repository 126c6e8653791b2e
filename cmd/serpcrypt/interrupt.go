package main

import "context"

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
