package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/secret"
)

// serverProcess is a server as the program that started it sees it.
type serverProcess struct {
	process *os.Process
	entry   runEntry
	orders  *os.File
	answers *os.File
	ended   chan struct{} // closed when the process has ended
}

// startServer starts a server on a container and returns when the volume can be
// used. Whatever goes wrong, nothing is left of the server.
func startServer(ctx context.Context, settings serverSettings, key *secret.Buffer, file *container, lock *os.File) (*serverProcess, error) {
	p := &serverProcess{entry: runEntry{settings.Entry}, ended: make(chan struct{})}
	ordersEnd, orders, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	defer ordersEnd.Close()
	answers, answersEnd, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, fmt.Errorf("server: %w", err)
	}
	p.orders, p.answers = orders, answers

	// The file that runs now, even if another has been put in its place.
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"serpcrypt", "--kernel", settings.State.Kernel, serveName}
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.ExtraFiles = []*os.File{ordersEnd, answersEnd, file.data.OSFile(), file.header.OSFile(), lock} // as ordersFd ... lockFd say
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if settings.Foreground {
		cmd.Stderr = os.Stderr
	}
	err = startToServeWriteback(cmd)
	answersEnd.Close()
	if err != nil {
		orders.Close()
		answers.Close()
		return nil, fmt.Errorf("server: %w", err)
	}
	p.process = cmd.Process
	go func() {
		_ = cmd.Wait() // what became of it is read from the entry
		close(p.ended)
	}()

	settings.State.PID = p.process.Pid
	if err = p.entry.writeState(settings.State); err == nil {
		err = sendSettings(p.orders, settings, key)
	}
	if err == nil {
		err = p.waitReady(ctx)
	}
	if err != nil {
		p.abort()
		return nil, err
	}
	return p, nil
}

// startToServeWriteback starts a command and tells the kernel that it will write
// caches by way of that: where the command needs memory, to wait until something
// cached is written could be to wait for itself. The new process has this from the
// thread that starts it, and passes it on to all its threads. Where it is forbidden,
// the kernel cannot be made to mount a file system either; Linux has it from 5.6 on.
func startToServeWriteback(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_IO_FLUSHER, 1, 0, 0, 0) == nil {
		defer func() { _ = unix.Prctl(unix.PR_SET_IO_FLUSHER, 0, 0, 0, 0) }()
	}
	return cmd.Start()
}

func (p *serverProcess) waitReady(ctx context.Context) error {
	return untilDone(ctx, func() error {
		var a answer
		if json.NewDecoder(p.answers).Decode(&a) != nil {
			return failf(exitBad, "", "the server ended unexpectedly")
		}
		if !a.Ready {
			return a.failure()
		}
		return nil
	})
}

func (p *serverProcess) send(o order) error {
	if err := json.NewEncoder(p.orders).Encode(o); err != nil {
		return fmt.Errorf("order to the server: %w", err)
	}
	return nil
}

// commit makes the container stay open when this process ends.
func (p *serverProcess) commit(s openState) error {
	s.Opening = false
	if err := p.entry.writeState(s); err != nil {
		return err
	}
	return p.send(order{Commit: &s})
}

// abort has the server unmount and end, and takes away what it leaves if it
// does not manage by itself.
func (p *serverProcess) abort() {
	p.orders.Close()
	p.answers.Close()
	select {
	case <-p.ended:
	case <-time.After(politeTime + 2*lastTime):
		_ = p.process.Kill()
		<-p.ended
	}
	if _, err := os.Stat(p.entry.path); err == nil {
		if err := p.entry.cleanUp(); err != nil {
			warnf("%s", errorText(err))
		}
	}
}

// stayWith waits for the end of the server, and ends it if ctx is done.
func (p *serverProcess) stayWith(ctx context.Context) error {
	select {
	case <-ctx.Done():
		p.orders.Close()
		<-p.ended
	case <-p.ended:
	}
	return reportEnd(p.entry)
}
