package bench

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"serpcrypt/internal/load"
)

const loadEnv = "SERPCRYPT_TEST_SERVES_LOAD"

// TestMain makes the test binary stand in for the program that makes the load.
func TestMain(m *testing.M) {
	if os.Getenv(loadEnv) == "" {
		os.Exit(m.Run())
	}
	if err := load.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func testLoad() *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), loadEnv+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}
