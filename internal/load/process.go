package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Process is one that does Serve, seen from here.
type Process struct {
	cmd     *exec.Cmd
	end     io.Closer
	orders  *json.Encoder
	answers *json.Decoder
}

// Start starts it with open files, which it finds at the paths that Inherited
// returns.
func Start(cmd *exec.Cmd, files ...*os.File) (*Process, error) {
	cmd.ExtraFiles = files
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// Ctrl-C on the terminal is for us: we let it end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{cmd, in, json.NewEncoder(in), json.NewDecoder(out)}, nil
}

// Inherited returns the path of the file number i for the process.
func Inherited(i int) string { return fmt.Sprintf("/proc/self/fd/%d", 3+i) }

// Holds returns the path of its file number i for all others.
func (p *Process) Holds(i int) string { return fmt.Sprintf("/proc/%d/fd/%d", p.cmd.Process.Pid, 3+i) }

// Do has it do what the order says.
func (p *Process) Do(o Order) (Answer, error) {
	if err := p.orders.Encode(o); err != nil {
		return Answer{}, fmt.Errorf("load: %w", err)
	}
	var a Answer
	if err := p.answers.Decode(&a); err != nil {
		return a, fmt.Errorf("load: %w", err)
	}
	if a.Error != "" {
		return a, errors.New("load: " + a.Error)
	}
	return a, nil
}

// Close ends it.
func (p *Process) Close() error {
	return errors.Join(p.end.Close(), p.cmd.Wait())
}
