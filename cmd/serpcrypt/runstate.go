package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/fusefs"
)

// The runtime folder has a folder for each open container:
//
//	.lock             locked while an entry is made or cleaned up
//	ID/state.json     what is open, see openState
//	ID/usage.json     how much it is used, see usage
//	ID/server         locked by the server as long as it lives
//	ID/raw/volume     the plaintext, by FUSE; unless it is mounted elsewhere

const (
	folderLockName = ".lock"
	stateName      = "state.json"
	usageName      = "usage.json"
	serverLockName = "server"
	rawName        = "raw"
)

// runtimeDirEnv overrides where the runtime folder is. Whoever can set it
// can run any other program in place of this one too; and the folder it names
// has to pass the same checks.
const runtimeDirEnv = "SERPCRYPT_RUNTIME_DIR"

// openState is what is known of an open container. It holds no secret.
type openState struct {
	Container  string    `json:"container"`        // absolute, without symbolic links
	Header     string    `json:"header,omitempty"` // likewise, if it is detached
	MountPoint string    `json:"mount_point"`
	Raw        bool      `json:"raw"`
	FileSystem string    `json:"file_system,omitempty"`
	Driver     string    `json:"driver,omitempty"` // of the file system: kernel, or a program
	Loop       string    `json:"loop_device,omitempty"`
	Type       string    `json:"type"`
	Cipher     string    `json:"cipher"`
	Kernel     string    `json:"kernel"`
	KeySlot    int       `json:"key_slot"` // -1: opened by the volume key
	Size       int64     `json:"size"`     // bytes of the volume
	ReadOnly   bool      `json:"read_only"`
	IdleLimit  float64   `json:"idle_timeout_seconds,omitempty"`
	Since      time.Time `json:"since"`
	PID        int       `json:"pid"`               // of the server
	Opening    bool      `json:"opening,omitempty"` // not usable yet
	Failure    string    `json:"failure,omitempty"` // with which the server ended
}

// runtimePath returns where the runtime folder is, or would be.
func runtimePath() string {
	if path := os.Getenv(runtimeDirEnv); path != "" {
		return path
	}
	uid := os.Geteuid()
	if uid == 0 {
		return "/run/serpcrypt"
	}
	// A session without the variable is to see the same containers.
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", uid)} {
		// After su it may be that of another user.
		if info, err := os.Stat(dir); err == nil && info.IsDir() && filepath.IsAbs(dir) && ownerOf(info) == uid {
			return filepath.Join(dir, "serpcrypt")
		}
	}
	return filepath.Join(os.TempDir(), "serpcrypt-"+strconv.Itoa(uid))
}

// resolvedRuntimePath is runtimePath as the kernel's table of mounts has it:
// absolute and without symbolic links on the way. The folder itself may be one.
func resolvedRuntimePath() (string, error) {
	path, err := filepath.Abs(runtimePath())
	if err != nil {
		return "", fmt.Errorf("runtime folder: %w", err)
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("runtime folder: %w", err)
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

// runtimeFolder is the folder at a path that nobody else can write to.
type runtimeFolder struct{ path string }

// makeRuntimeFolder returns the runtime folder, and makes it where it is missing.
func makeRuntimeFolder() (runtimeFolder, error) {
	path, err := resolvedRuntimePath()
	if err != nil {
		return runtimeFolder{}, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return runtimeFolder{}, fmt.Errorf("runtime folder: %w", err)
	}
	return runtimeFolder{path}, checkPrivate(path)
}

// findRuntimeFolder returns the runtime folder if there is one.
func findRuntimeFolder() (folder runtimeFolder, exists bool, err error) {
	path, err := resolvedRuntimePath()
	if err == nil {
		err = checkPrivate(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return runtimeFolder{}, false, nil
	}
	return runtimeFolder{path}, err == nil, err
}

// checkPrivate refuses what is not a folder of this user alone: another user
// may have made it, in /tmp above all.
func checkPrivate(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("runtime folder: %w", err)
	}
	reason, remove := "", "rmdir "
	owner := ownerOf(info)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		reason, remove = "it is a symbolic link", "rm "
	case !info.IsDir():
		reason, remove = "it is not a folder", "rm "
	case owner != os.Geteuid():
		reason = fmt.Sprintf("it belongs to user %d", owner)
	case info.Mode().Perm()&0o077 != 0:
		reason = fmt.Sprintf("others have access to it (mode %04o)", info.Mode().Perm())
	default:
		return nil
	}
	return failf(exitPermission, remove+shellQuote(path), "runtime folder %s is not to be trusted: %s", path, reason)
}

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// lock keeps other processes from making or cleaning up entries until unlock
// is called.
func (f runtimeFolder) lock() (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(f.path, folderLockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("runtime folder: %w", err)
	}
	if err := lockFile(file); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}

// lockFile waits for the others, who never hold such a lock for long.
func lockFile(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return fmt.Errorf("runtime folder: lock: %w", err)
		}
	}
}

// runEntry is the folder of one open container.
type runEntry struct{ path string }

func (e runEntry) statePath() string { return filepath.Join(e.path, stateName) }
func (e runEntry) usagePath() string { return filepath.Join(e.path, usageName) }
func (e runEntry) lockPath() string  { return filepath.Join(e.path, serverLockName) }
func (e runEntry) rawDir() string    { return filepath.Join(e.path, rawName) }
func (e runEntry) rawFile() string   { return filepath.Join(e.rawDir(), fusefs.FileName) }

// newEntry makes a folder for a container that is about to be opened. The
// server gets the lock, which lasts until the last copy of the descriptor is
// closed.
func (f runtimeFolder) newEntry(state openState) (e runEntry, serverLock *os.File, err error) {
	unlock, err := f.lock()
	if err != nil {
		return runEntry{}, nil, err
	}
	defer unlock()
	if err := f.checkFree(state.MountPoint); err != nil {
		return runEntry{}, nil, err
	}
	path, err := os.MkdirTemp(f.path, "")
	if err != nil {
		return runEntry{}, nil, fmt.Errorf("runtime folder: %w", err)
	}
	e = runEntry{path}
	defer func() {
		if err != nil {
			serverLock.Close()
			err = errors.Join(err, e.remove())
		}
	}()
	if err = os.Mkdir(e.rawDir(), 0o700); err != nil {
		return e, nil, fmt.Errorf("runtime folder: %w", err)
	}
	serverLock, err = os.OpenFile(e.lockPath(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return e, nil, fmt.Errorf("runtime folder: %w", err)
	}
	if err = lockFile(serverLock); err != nil {
		return e, serverLock, err
	}
	return e, serverLock, e.writeState(state)
}

// checkFree refuses a mount point where another container is about to be
// mounted, which the table of mounts does not show yet.
func (f runtimeFolder) checkFree(mountPoint string) error {
	entries, err := f.entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if s, err := e.readState(); err == nil && s.Opening && s.MountPoint == mountPoint && e.alive() {
			return failf(exitBusy, hintAnotherDir, "mount point %s: %s is being opened there", mountPoint, s.Container)
		}
	}
	return nil
}

// entries returns what is in the runtime folder.
func (f runtimeFolder) entries() ([]runEntry, error) {
	names, err := os.ReadDir(f.path)
	if err != nil {
		return nil, fmt.Errorf("runtime folder: %w", err)
	}
	var entries []runEntry
	for _, name := range names {
		if name.IsDir() {
			entries = append(entries, runEntry{filepath.Join(f.path, name.Name())})
		}
	}
	return entries, nil
}

func (e runEntry) writeState(s openState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("runtime folder: %w", err)
	}
	return replaceFile(e.statePath(), text)
}

// replaceFile replaces a file of the runtime folder at once, so that readers
// never see half of it.
func replaceFile(path string, text []byte) error {
	temporary := path + ".new"
	err := os.WriteFile(temporary, text, 0o600)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return fmt.Errorf("runtime folder: %w", err)
	}
	return nil
}

func (e runEntry) readState() (openState, error) {
	text, err := os.ReadFile(e.statePath())
	if err != nil {
		return openState{}, fmt.Errorf("runtime folder: %w", err)
	}
	var s openState
	if err := json.Unmarshal(text, &s); err != nil {
		return openState{}, fmt.Errorf("runtime folder: %s: %w", e.statePath(), err)
	}
	return s, nil
}

// folder returns the runtime folder that the entry is in.
func (e runEntry) folder() runtimeFolder { return runtimeFolder{filepath.Dir(e.path)} }

// remove removes the entry's files, of which nothing may be mounted any more.
// It names each, so that it never reaches into a mount.
func (e runEntry) remove() error {
	usage, state := e.usagePath(), e.statePath()
	for _, path := range []string{e.rawDir(), usage + ".new", usage, state + ".new", state, e.lockPath(), e.path} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("runtime folder: %w", err)
		}
	}
	return nil
}
