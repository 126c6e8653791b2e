//go:build race

package modes

// The race detector slows the cipher down tenfold and has nothing to find in
// tests that run in one goroutine, so these take fewer steps under it.
const raceEnabled = true
