// Package child runs programs beside a test.
package child

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// Child is a program that runs until its standard input ends.
type Child struct {
	*exec.Cmd
	t     testing.TB
	input io.WriteCloser
	lines *bufio.Scanner
	ended bool
}

// Start starts the program and asks it, see Ask. If it still runs when the test is
// done, it has to end well then.
func Start(t testing.TB, cmd *exec.Cmd, question, answer string) *Child {
	t.Helper()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &Child{Cmd: cmd, t: t, input: input, lines: bufio.NewScanner(output)}
	t.Cleanup(c.End)
	c.Ask(question, answer)
	return c
}

// Ask writes a question, which may be empty, to the program's standard input, and
// waits until it prints a line with the answer in it.
func (c *Child) Ask(question, answer string) {
	c.t.Helper()
	if _, err := io.WriteString(c.input, question); err != nil {
		c.t.Fatal(err)
	}
	for c.lines.Scan() {
		if strings.Contains(c.lines.Text(), answer) {
			return
		}
	}
	c.t.Fatalf("%s does not print %q", c.Path, answer)
}

// Wait ends the program's input and waits for it, however it ends.
func (c *Child) Wait() error {
	if c.ended {
		return nil
	}
	c.ended = true
	c.input.Close()
	return c.Cmd.Wait()
}

// End is Wait for a program that has to end well.
func (c *Child) End() {
	c.t.Helper()
	if err := c.Wait(); err != nil {
		c.t.Errorf("%s: %v", c.Path, err)
	}
}
