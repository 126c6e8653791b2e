package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// serverLife watches whether the server of an entry lives.
type serverLife struct{ lock *os.File }

// watch returns nil for an entry that never had a server.
func (e runEntry) watch() (*serverLife, error) {
	lock, err := os.OpenFile(e.lockPath(), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("runtime folder: %w", err)
	}
	return &serverLife{lock}, nil
}

// alive reports whether the server lives. It never waits for it.
func (l *serverLife) alive() bool {
	if l == nil {
		return false
	}
	err := unix.Flock(int(l.lock.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		unix.Flock(int(l.lock.Fd()), unix.LOCK_UN)
	}
	return err != nil
}

// endedWell is how a server that ends leaves word of it for those who watch it:
// its entry is gone then, but that may be the work of somebody who cleaned up.
const endedWell = "closed"

// endedWell reports whether a server that no longer lives has put everything on
// the disk.
func (l *serverLife) endedWell() bool {
	word := make([]byte, len(endedWell))
	_, err := l.lock.ReadAt(word, 0)
	return err == nil && string(word) == endedWell
}

func (l *serverLife) close() {
	if l != nil {
		l.lock.Close()
	}
}

func (e runEntry) alive() bool {
	life, err := e.watch()
	if err != nil {
		return false
	}
	defer life.close()
	return life.alive()
}
