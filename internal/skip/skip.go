// Package skip lets a test say why it cannot run here, and lets whoever runs
// the tests forbid that.
package skip

import (
	"os"
	"testing"
)

// ForbidEnv is the environment variable that turns every skip into a failure,
// but those for want of something in the CPU.
const ForbidEnv = "SERPCRYPT_NO_SKIP"

// Skip ends the test as skipped, or as failed if ForbidEnv is "1". The reason
// is printed in both cases.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(ForbidEnv) == "1" {
		t.Fatalf("cannot run here (%s=1 forbids to skip): %s", ForbidEnv, reason)
	}
	t.Skip(reason)
}

// CPU ends the test as skipped because the CPU lacks what reason says. ForbidEnv
// does not count here: nothing that could be installed would help.
func CPU(t testing.TB, reason string) {
	t.Helper()
	t.Skip(reason)
}
