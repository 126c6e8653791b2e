package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// load is a process that does ServeLoad, seen from here.
type load struct {
	cmd     *exec.Cmd
	end     io.Closer
	orders  *json.Encoder
	answers *json.Decoder
}

// startLoad starts it with open files, which it finds at the paths that inherited
// returns.
func startLoad(cmd *exec.Cmd, files ...*os.File) (*load, error) {
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
	return &load{cmd, in, json.NewEncoder(in), json.NewDecoder(out)}, nil
}

// inherited returns the path of the file number i.
func inherited(i int) string { return fmt.Sprintf("/proc/self/fd/%d", 3+i) }

// holds returns the path of its file number i for this process.
func (l *load) holds(i int) string { return fmt.Sprintf("/proc/%d/fd/%d", l.cmd.Process.Pid, 3+i) }

func (l *load) do(o loadOrder) (loadAnswer, error) {
	if err := l.orders.Encode(o); err != nil {
		return loadAnswer{}, fmt.Errorf("load: %w", err)
	}
	var a loadAnswer
	if err := l.answers.Decode(&a); err != nil {
		return a, fmt.Errorf("load: %w", err)
	}
	if a.Error != "" {
		return a, errors.New("load: " + a.Error)
	}
	return a, nil
}

func (l *load) close() error {
	return errors.Join(l.end.Close(), l.cmd.Wait())
}
