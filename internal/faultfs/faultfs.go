// Package faultfs is a disk for tests of whole programs: a FUSE file system that
// shows the files of a folder, fails on request, and holds back what is written
// until fsync. When its power is cut, what it holds back is lost, block by block.
//
// It runs in a process of its own. One that serves files which it also uses can
// wait for itself forever, above all when it is killed.
//
// Names, sizes and permissions of files are never held back.
package faultfs

import (
	"bytes"
	"io"
	"net/rpc"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Program is the name under which a test's TestMain has to make Main available.
const Program = "faultfs"

// BlockSize is the size of the pieces that a power cut takes or leaves whole.
const BlockSize = 4096

// Op is a kind of request.
type Op int

const (
	Read Op = iota
	Write
	Sync
)

// Fault is what happens to requests.
type Fault struct {
	Op       Op
	From, To int64         // the bytes that a request has to touch; To 0: all from From on
	Err      syscall.Errno // 0: it succeeds
	Delay    time.Duration // before it fails or succeeds
}

func (f Fault) hits(op Op, off int64, n int) bool {
	switch {
	case f.Op != op:
		return false
	case op == Sync:
		return true
	}
	return off+int64(n) > f.From && (f.To == 0 || off < f.To)
}

// FS is a mounted file system.
type FS struct {
	t       testing.TB
	command *exec.Cmd
	said    bytes.Buffer
	control *rpc.Client
}

// Start mounts the folder at mountPoint, until the test ends.
func Start(t testing.TB, folder, mountPoint string) *FS {
	t.Helper()
	f := &FS{t: t, command: exec.Command(Program, folder, mountPoint)}
	f.command.Stderr = &f.said
	stdin, err := f.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := f.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.command.Start(); err != nil {
		t.Fatal(err)
	}
	f.control = rpc.NewClient(pipes{stdout, stdin})
	t.Cleanup(f.stop)
	f.call("Ready", struct{}{}, nil)
	return f
}

func (f *FS) stop() {
	f.control.Close() // which it takes as the order to unmount and end
	hung := time.AfterFunc(20*time.Second, func() { f.command.Process.Kill() })
	defer hung.Stop()
	if err := f.command.Wait(); err != nil {
		f.t.Errorf("faultfs: %v\n%s", err, f.said.String())
	}
}

func (f *FS) call(method string, argument, reply any) {
	f.t.Helper()
	call := f.control.Go("Control."+method, argument, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		if call.Error != nil {
			f.t.Fatalf("faultfs: %s: %v\n%s", method, call.Error, f.said.String())
		}
	case <-time.After(time.Minute):
		f.t.Fatalf("faultfs: %s: no answer", method)
	}
}

// Fail sets the faults, in place of those that there were. The first that a
// request hits counts.
func (f *FS) Fail(faults ...Fault) {
	f.t.Helper()
	f.call("Fail", faults, nil)
}

// Hits returns how many requests have hit a fault so far.
func (f *FS) Hits() (n int) {
	f.t.Helper()
	f.call("Hits", struct{}{}, &n)
	return n
}

// Unsynced returns how many blocks are held back.
func (f *FS) Unsynced() (blocks int) {
	f.t.Helper()
	f.call("Unsynced", struct{}{}, &blocks)
	return blocks
}

// CutPower loses what is held back, and returns how many blocks that are. With a
// seed other than 0 it is left to chance which are lost and which had reached the
// disk by themselves; with 0 all are lost.
func (f *FS) CutPower(seed uint64) (lost int) {
	f.t.Helper()
	f.call("CutPower", seed, &lost)
	return lost
}

// pipes are both directions of a connection.
type pipes struct {
	io.Reader
	io.WriteCloser
}
