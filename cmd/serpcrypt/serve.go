package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"unsafe"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/fusefs"
	"serpcrypt/volume"
)

const serveName = "serve"

// serverMemory is how much memory the garbage collector lets a server take
// before it works harder. Buffers for requests are most of it.
const serverMemory = 48 << 20

// A program started as /proc/self/exe is called "exe" by the kernel, unless its
// first thread says otherwise, on which this function runs.
func init() {
	name := []byte("serpcrypt\x00")
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
}

// serveCommand is what "open" runs in the background. It is not for people.
func serveCommand() *cli.Command {
	return &cli.Command{
		Name:   serveName,
		Hidden: true,
		Usage:  "serve an open container (started by open)",
		Action: runServe,
	}
}

func runServe(c *cli.Context) error {
	if _, err := exactArgs(c); err != nil {
		return err
	}
	files, err := inheritedFiles()
	if err != nil {
		return failf(exitUsage, "use serpcrypt open", "serve is not for people: %w", err)
	}
	debug.SetMemoryLimit(serverMemory)
	// The terminal may go; only SIGTERM ends a server, and never halfway.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)

	s, err := startServing(files)
	if err != nil {
		tell(files.answers, failedAnswer(err))
		return nil // who has to know does
	}
	tell(files.answers, answer{Ready: true})
	files.answers.Close()
	s.run(receiveOrders(files.orders), terminate)
	s.finish()
	return nil
}

// serverFiles are the descriptors that open hands down, beside containerFd and
// headerFd.
type serverFiles struct{ orders, answers, lock *os.File }

func inheritedFiles() (serverFiles, error) {
	for fd, wanted := range map[int]uint32{ordersFd: unix.S_IFIFO, answersFd: unix.S_IFIFO, containerFd: 0, headerFd: 0, lockFd: unix.S_IFREG} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			return serverFiles{}, err
		}
		if wanted != 0 && stat.Mode&unix.S_IFMT != wanted {
			return serverFiles{}, unix.EBADF
		}
		// Not for the programs that the server starts.
		unix.CloseOnExec(fd)
	}
	return serverFiles{
		orders:  os.NewFile(ordersFd, "orders"),
		answers: os.NewFile(answersFd, "answers"),
		lock:    os.NewFile(lockFd, "lock"),
	}, nil
}

// inheritedContainer takes over the descriptors of the container.
func inheritedContainer(s openState) (*container, error) {
	data, err := volume.NewFile(os.NewFile(containerFd, s.Container))
	if err != nil {
		return nil, err
	}
	file := &container{s.Container, data, data}
	if s.Header == "" {
		return file, unix.Close(headerFd)
	}
	file.header, err = volume.NewFile(os.NewFile(headerFd, s.Header))
	return file, err
}

// tell sends an answer. Whoever started the server may be dead by now; that
// shows where the orders come from.
func tell(w io.Writer, a answer) { _ = json.NewEncoder(w).Encode(a) }

// server serves one open container.
type server struct {
	entry      runEntry
	state      openState
	foreground bool
	files      *container
	fileSize   int64 // of the payload's, when it was opened
	volume     *volume.Volume
	mount      *fusefs.Server
	lock       *os.File // held as long as the process lives
	log        *log.Logger
	quiet      bool
	idle       *idleClock // nil: never
	meter      usageMeter
	written    usage // what the entry has
	lost       error // with which the last changes got lost
}

func startServing(files serverFiles) (*server, error) {
	settings, key, err := receiveSettings(files.orders)
	if err != nil {
		return nil, err
	}
	defer key.Close()
	s := &server{
		entry:      runEntry{settings.Entry},
		state:      settings.State,
		foreground: settings.Foreground,
		lock:       files.lock,
		log:        log.New(io.Discard, "", 0),
		quiet:      settings.Quiet,
	}
	if s.foreground {
		s.log = log.New(os.Stderr, "serpcrypt: ", log.Ltime|log.Lmsgprefix)
	}
	kernel, err := serpent.ParseKernel(s.state.Kernel)
	if err != nil {
		return nil, err
	}
	if s.files, err = inheritedContainer(s.state); err != nil {
		return nil, err
	}
	if s.fileSize, err = s.files.data.Size(); err != nil {
		return nil, err
	}
	// Whoever started the server has checked the key.
	checked := &volume.Key{Bytes: key, Slot: s.state.KeySlot}
	s.volume, err = volume.Open(s.files.stores(), checked, volume.Options{Kernel: kernel, ReadOnly: s.state.ReadOnly})
	if err != nil {
		return nil, err
	}
	s.mount, err = fusefs.Mount(s.entry.fuseDir(s.state), s.volume, fusefs.Options{
		Source:     fuseSource(s.state),
		ReadOnly:   s.state.ReadOnly,
		AllowOther: settings.AllowOther,
		Discards:   settings.Discards,
		ZeroRange:  s.state.Raw,
		Log:        s.log,
	})
	if err != nil {
		return nil, errors.Join(explainFuse(err), s.volume.Close())
	}
	fusefs.MoreThreads()
	return s, nil
}

// finish puts everything on the disk, wipes the keys, and leaves word if
// that, or a write before, went wrong.
func (s *server) finish() {
	err := errors.Join(s.lost, s.volume.Close())
	if n := s.mount.WriteErrors(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d writes failed", n))
	}
	if !s.state.ReadOnly {
		err = errors.Join(err, s.files.fate(s.fileSize))
	}
	err = errors.Join(err, s.files.close())
	if err == nil {
		_, err = s.lock.WriteString(endedWell)
	}
	if err == nil {
		s.say("closed %s", s.state.Container)
		s.note(s.entry.remove())
		return
	}
	s.log.Printf("closed %s, but: %v", s.state.Container, err)
	s.state.Failure = errorText(err)
	s.note(s.entry.writeState(s.state))
}
