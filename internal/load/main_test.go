package load

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

const serveEnv = "SERPCRYPT_TEST_SERVES_LOAD"

// TestMain makes the test binary stand in for a program that does Serve.
func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) == "" {
		os.Exit(m.Run())
	}
	if err := Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func testProcess() *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), serveEnv+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}
