package child

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestChild(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	script := `read word; echo before; sleep 0.1; >"$0"; echo "got $word"; read word; sleep 0.1; rm "$0"; echo "then $word"; cat`
	c := Start(t, exec.Command("sh", "-c", script, made), "one\n", "got one")
	if _, err := os.Stat(made); err != nil {
		t.Errorf("it has not waited for the answer: %v", err)
	}
	c.Ask("two\n", "then two")
	if _, err := os.Stat(made); err == nil {
		t.Error("it has not waited for the second answer")
	}
	if c.ProcessState != nil {
		t.Error("it has ended before its input")
	}
	c.End()
	if c.ProcessState == nil || !c.ProcessState.Success() {
		t.Errorf("it ends with %v", c.ProcessState)
	}
	if err := Start(t, exec.Command("sh", "-c", "echo here; cat; exit 3"), "", "here").Wait(); err == nil {
		t.Error("that it fails is not told")
	}
}
