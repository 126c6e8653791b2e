package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/volume"
	"serpcrypt/volume/luks2"
)

// The passphrases of a container that is changed by a process which is killed:
// those of its key slots 0 and 1, and one that it may have afterwards.
const (
	oldPassphrase   = "old"
	otherPassphrase = "other"
	newPassphrase   = "new"
)

// killable is a command that writes a header, and what must hold when it has been
// killed. It works in a folder with the container "box", of the passphrases "old"
// and "other".
type killable struct {
	name    string
	formats []string                          // all if empty
	options []string                          // of create
	prepare func(t *testing.T, folder string) // before it, undisturbed
	args    []string                          // FORMAT stands for that
	stdin   string
	always  []string // passphrases that open at any time
	oneOf   []string // at least one of them does, if there are any
	kept    int64    // bytes of the volume that stay, if not all do
	backup  string   // file that may be left behind, whole
	// A header that could not be read before may not be afterwards, if the command
	// then helps when it is run again.
	mayBeUnreadable bool
	detached        bool // the header is in "head"

	// For commands that make a container.
	empty      bool                                         // the folder is, at first
	makeDevice func(t *testing.T, k *killing) (path string) // makes what DEVICE stands for
	holds      func(t *testing.T, k *killing, when string)  // checks all that must hold
}

var bothPassphrases = []string{oldPassphrase, otherPassphrase}

// quickly are options that make a key slot in no time.
var quickly = []string{"-q", "--pbkdf-force-iterations", "1000"}

// changes are all commands that write a header which is there.
var changes = []killable{
	{
		name:   "key add",
		args:   append([]string{"key", "add", "box"}, quickly...),
		stdin:  "old\nnew\n",
		always: bothPassphrases,
	},
	{
		name:   "key add to slot 6", // it lies in two sectors of LUKS1
		args:   append([]string{"key", "add", "-S", "6", "box"}, quickly...),
		stdin:  "old\nnew\n",
		always: bothPassphrases,
	},
	{
		name:   "key change",
		args:   append([]string{"key", "change", "box"}, quickly...),
		stdin:  "old\nnew\n",
		always: []string{otherPassphrase},
		oneOf:  []string{oldPassphrase, newPassphrase},
	},
	{
		name: "key change, detached header",
		prepare: func(t *testing.T, folder string) {
			detach(t, folder)
		},
		args:     append([]string{"key", "change", "--header", "head", "box"}, quickly...),
		stdin:    "old\nnew\n",
		always:   []string{otherPassphrase},
		oneOf:    []string{oldPassphrase, newPassphrase},
		detached: true,
	},
	{
		name:   "key remove",
		args:   []string{"key", "remove", "box"},
		stdin:  "old\n",
		always: []string{otherPassphrase},
	},
	{
		name:   "key remove by slot",
		args:   []string{"key", "remove", "-q", "-S", "1", "box"},
		always: []string{oldPassphrase},
	},
	{
		name: "erase",
		args: []string{"erase", "-q", "box"},
	},
	{
		name: "header restore",
		prepare: func(t *testing.T, folder string) {
			runIn(t, folder, "", "header", "backup", "box", "copy").must(t, 0)
			runIn(t, folder, "old\nnew\n", append([]string{"key", "change", "box"}, quickly...)...).must(t, 0)
		},
		args:   []string{"header", "restore", "-q", "box", "copy"},
		always: []string{otherPassphrase},
		oneOf:  []string{oldPassphrase, newPassphrase},
	},
	{
		name: "header restore over zeros",
		prepare: func(t *testing.T, folder string) {
			runIn(t, folder, "", "header", "backup", "box", "copy").must(t, 0)
			poke(t, filepath.Join(folder, "box"), 0, strings.Repeat("\x00", 1<<20))
		},
		args:            []string{"header", "restore", "-q", "box", "copy"},
		always:          bothPassphrases,
		mayBeUnreadable: true,
	},
	{
		name:   "config --uuid",
		args:   []string{"config", "--uuid", "", "box"},
		always: bothPassphrases,
	},
	{
		name:    "config --label",
		formats: []string{"luks2"},
		args:    []string{"config", "--label", "holiday", "box"},
		always:  bothPassphrases,
	},
	{
		name:    "key change to Argon2",
		formats: []string{"luks2"},
		args:    []string{"key", "change", "-q", "--pbkdf", "argon2id", "--pbkdf-force-iterations", "4", "--pbkdf-memory", "32", "--pbkdf-parallel", "1", "box"},
		stdin:   "old\nnew\n",
		always:  []string{otherPassphrase},
		oneOf:   []string{oldPassphrase, newPassphrase},
	},
	{
		name:    "repair of a key slot",
		formats: []string{"luks1"},
		prepare: func(t *testing.T, folder string) {
			poke(t, filepath.Join(folder, "box"), 208+2*48, "\x12\x34\x56\x78") // LUKS1 On-Disk Format 1.2.3, table 1
		},
		args:   []string{"repair", "-q", "box"},
		always: bothPassphrases,
		backup: "box.damaged-header",
	},
	{
		name:    "repair of the primary copy",
		formats: []string{"luks2"},
		prepare: func(t *testing.T, folder string) {
			poke(t, filepath.Join(folder, "box"), 0, strings.Repeat("\x00", luks2.MinSize))
		},
		args:   []string{"repair", "-q", "box"},
		always: bothPassphrases,
		backup: "box.damaged-header",
	},
	{
		name:    "repair of the secondary copy",
		formats: []string{"luks2"},
		prepare: func(t *testing.T, folder string) {
			poke(t, filepath.Join(folder, "box"), luks2.MinSize, "\x00")
		},
		args:   []string{"repair", "-q", "box"},
		always: bothPassphrases,
		backup: "box.damaged-header",
	},
	{
		name:    "convert to LUKS2",
		formats: []string{"luks1"},
		args:    []string{"convert", "-q", "--type", "luks2", "box"},
		always:  bothPassphrases,
	},
	{
		name:    "convert to LUKS1",
		formats: []string{"luks2"},
		options: []string{"--sector-size", "512"},
		args:    []string{"convert", "-q", "--type", "luks1", "box"},
		always:  bothPassphrases,
	},
	{
		name:   "resize, larger",
		args:   []string{"resize", "box", "8M"},
		always: bothPassphrases,
	},
	{
		name:   "resize, smaller",
		args:   []string{"resize", "--force", "-q", "box", fmt.Sprint(killedSize - 512<<10)},
		stdin:  "old\n",
		always: bothPassphrases,
		kept:   killedPayload - 512<<10,
	},
	{
		name:    "resize, larger, the size in the header",
		formats: []string{"luks2"},
		prepare: stateSize,
		args:    []string{"resize", "box", "8M"},
		always:  bothPassphrases,
	},
	{
		name:    "resize, smaller, the size in the header",
		formats: []string{"luks2"},
		prepare: stateSize,
		args:    []string{"resize", "--force", "-q", "box", fmt.Sprint(killedSize - 512<<10)},
		stdin:   "old\n",
		always:  bothPassphrases,
		kept:    killedPayload - 512<<10,
	},
}

// stateSize has the header state how long the payload is.
func stateSize(t *testing.T, folder string) {
	t.Helper()
	editLUKS2(t, filepath.Join(folder, "box"), func(h *luks2.Header) {
		s := h.Segments[0]
		s.Size = killedSize - s.Offset
	})
}

// The size of a container that is changed, in bytes, and how much of it is sure
// to be payload.
const (
	killedSize    = 6 << 20
	killedPayload = 1 << 20
)

// killFormats are those that the commands are killed with.
var killFormats = []string{"luks1", "luks2"}

// TestKill kills each command at random moments: half of them anywhere in its
// run, half after its first write. SERPCRYPT_LONG=1 makes it a thousand times in
// all.
func TestKill(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var all []*killing
	for _, format := range killFormats {
		usual := newSubject(t, format)
		for _, k := range slices.Concat(changes, creations, copies) {
			if len(k.formats) == 0 || slices.Contains(k.formats, format) {
				s := usual
				if k.options != nil {
					s = newSubject(t, format, k.options...)
				}
				all = append(all, &killing{killable: k, subject: s, random: random})
			}
		}
	}
	limit := killLimit{time: 20 * time.Second / time.Duration(len(all))}
	if os.Getenv("SERPCRYPT_LONG") == "1" {
		limit = killLimit{kills: (1000 + len(all) - 1) / len(all)}
	}
	kills, inWriting, commands := 0, 0, 0
	for _, k := range all {
		t.Run(k.format+"/"+k.name, func(t *testing.T) {
			commands++
			k.killOften(t, limit)
			kills, inWriting = kills+k.kills, inWriting+k.inWriting
		})
	}
	t.Logf("%d kills, %d of them when something was written", kills, inWriting)
	if inWriting == 0 && commands == len(all) {
		t.Error("no process was killed when it had written anything")
	}
}

// killLimit ends the killing after some time, or a number of kills.
type killLimit struct {
	time  time.Duration
	kills int
}

// killing is a command that is killed again and again.
type killing struct {
	killable
	*subject
	random *rand.Rand

	before  map[string][]byte // files by name
	folder  string
	device  string // path, or ""
	blocks  []byte // of the device, before
	took    took   // of late
	backups []byte // the backup file of a run that was not disturbed

	kills, inWriting int
}

// took are the times of a run: of all of it, and from its first write on.
type took struct{ whole, writing time.Duration }

// note takes the times of another run, to which the machine may have been kinder.
func (l *took) note(start, firstWrite time.Time) {
	mean := func(old *time.Duration, since time.Time) {
		if *old == 0 {
			*old = time.Since(since)
		}
		*old = (*old + time.Since(since)) / 2
	}
	mean(&l.whole, start)
	if !firstWrite.IsZero() {
		mean(&l.writing, firstWrite)
	}
}

func (k *killing) killOften(t *testing.T, limit killLimit) {
	start := time.Now()
	k.setUp(t)
	k.reset(t)
	k.run(t, undisturbed)
	if k.backup != "" {
		k.backups = []byte(content(t, filepath.Join(k.folder, k.backup)))
	}
	k.check(t, "undisturbed")
	if k.unchanged(t) {
		t.Fatal("the command changes nothing")
	}
	for try := 0; !t.Failed(); try++ {
		if limit.kills > 0 && k.kills == limit.kills || limit.kills == 0 && k.kills >= 2 && time.Since(start) > limit.time {
			break
		}
		k.reset(t)
		m := moment{fromWrite: try%2 == 0}
		m.delay = time.Duration(k.random.Int64N(int64(k.took.whole)))
		if m.fromWrite {
			m.delay = time.Duration(k.random.Int64N(int64(k.took.writing) + 1)) // 0: the first write went unseen
		}
		if !k.run(t, m) {
			continue
		}
		k.kills++
		if !k.unchanged(t) {
			k.inWriting++
		}
		k.check(t, m.String())
	}
	t.Logf("%d kills in runs of %v, %d of them in the last %v, which write", k.kills, k.took.whole, k.inWriting, k.took.writing)
}

// setUp makes the folder as it is before the command.
func (k *killing) setUp(t *testing.T) {
	k.folder = t.TempDir()
	if k.makeDevice != nil {
		k.device = k.makeDevice(t, k)
		k.blocks = []byte(content(t, k.device))
	}
	replace := strings.NewReplacer("FORMAT", k.format, "DEVICE", k.device)
	k.args = slices.Clone(k.args)
	for i, arg := range k.args {
		k.args[i] = replace.Replace(arg)
	}
	if k.empty {
		return
	}
	if err := os.WriteFile(filepath.Join(k.folder, "box"), k.subject.box, 0o600); err != nil {
		t.Fatal(err)
	}
	if k.prepare != nil {
		k.prepare(t, k.folder)
	}
	k.before = map[string][]byte{}
	for _, name := range strings.Fields(names(t, k.folder)) {
		k.before[name] = []byte(content(t, filepath.Join(k.folder, name)))
	}
}

// subject is a container that commands change.
type subject struct {
	format      string
	box, volume []byte // all of it, and its plaintext
}

func newSubject(t *testing.T, format string, options ...string) *subject {
	t.Helper()
	folder := t.TempDir()
	args := append([]string{"create", "--type", format, "--size", fmt.Sprint(killedSize), "box"}, quickly...)
	runIn(t, folder, "old\n", append(args, options...)...).must(t, 0)
	runIn(t, folder, "old\nother\n", append([]string{"key", "add", "box"}, quickly...)...).must(t, 0)
	if dump := runIn(t, folder, "", "dump", "--json", "box").must(t, 0).stdout; !strings.Contains(dump, `"type": "`+strings.ToUpper(format)+`"`) {
		t.Fatalf("this is no %s:\n%s", format, dump)
	}
	s := &subject{format: format, box: []byte(content(t, filepath.Join(folder, "box")))}
	s.volume = []byte(runIn(t, folder, "old\n", "export", "box", "-").must(t, 0).stdout)
	if len(s.volume) < killedPayload {
		t.Fatalf("it holds only %d bytes", len(s.volume))
	}
	return s
}

// detach puts the header into a file of its own.
func detach(t *testing.T, folder string) {
	t.Helper()
	box := filepath.Join(folder, "box")
	runIn(t, folder, "", "header", "backup", "box", "head").must(t, 0)
	if err := os.Chmod(filepath.Join(folder, "head"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := volume.PeekFile(box)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	h, err := volume.ReadHeader(volume.Attached(file))
	if err != nil {
		t.Fatal(err)
	}
	poke(t, box, 0, strings.Repeat("\x00", int(h.PayloadOffset)))
}

// reset makes the folder what it was before the command.
func (k *killing) reset(t *testing.T) {
	t.Helper()
	for _, name := range strings.Fields(names(t, k.folder)) {
		if _, wasThere := k.before[name]; !wasThere {
			if err := os.Remove(filepath.Join(k.folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if k.device != "" && content(t, k.device) != string(k.blocks) {
		poke(t, k.device, 0, string(k.blocks))
	}
	for name, b := range k.before {
		if !k.same(t, name) {
			if err := os.WriteFile(filepath.Join(k.folder, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// same reports whether the file is as it was before the command.
func (k *killing) same(t *testing.T, name string) bool {
	t.Helper()
	return content(t, filepath.Join(k.folder, name)) == string(k.before[name])
}

func (k *killing) unchanged(t *testing.T) bool {
	t.Helper()
	for _, name := range append(strings.Fields(names(t, k.folder)), slices.Collect(maps.Keys(k.before))...) {
		if !exists(filepath.Join(k.folder, name)) || !k.same(t, name) {
			return false
		}
	}
	return k.device == "" || content(t, k.device) == string(k.blocks)
}

// moment is when to kill.
type moment struct {
	delay     time.Duration // after the start
	fromWrite bool          // after the first write
}

var undisturbed = moment{delay: time.Hour}

func (m moment) String() string {
	if m.fromWrite {
		return fmt.Sprintf("killed %v after the first write", m.delay)
	}
	return fmt.Sprintf("killed after %v", m.delay)
}

// run runs the command and kills it at the moment. It reports whether it has
// not come to its end before.
func (k *killing) run(t *testing.T, m moment) (killed bool) {
	t.Helper()
	wrote := firstWrite(t, cmp.Or(k.device, k.folder))
	cmd := commandIn(k.folder, k.stdin, k.args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var end error
	hasEnded, firstAt := false, time.Time{}
	wait := func(until <-chan time.Time) {
		select {
		case <-until:
		case end = <-ended:
			hasEnded = true
		}
	}
	if m.fromWrite || m == undisturbed {
		select {
		case firstAt = <-wrote:
		case end = <-ended:
			hasEnded = true
		}
	}
	if !hasEnded {
		wait(time.After(m.delay))
	}
	if !hasEnded {
		cmd.Process.Kill()
		end = <-ended
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() && status.Signal() == syscall.SIGKILL {
		return true
	}
	if code := exitCode(t, end); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &stderr)
	}
	k.took.note(start, firstAt)
	return false
}

// headerFile is the name of what the command writes to.
func (k *killing) headerFile() string {
	if k.detached {
		return "head"
	}
	return "box"
}

// firstWrite returns a channel that tells when the file, or any in the folder, is
// next written to or made.
func firstWrite(t *testing.T, path string) <-chan time.Time {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { events.Close() })
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY|unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONESHOT); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan time.Time, 1)
	go func() {
		defer events.Close()
		if n, err := events.Read(make([]byte, unix.SizeofInotifyEvent+unix.NAME_MAX+1)); err == nil && n > 0 {
			wrote <- time.Now()
		}
	}()
	return wrote
}

// check checks what must hold, whatever has happened.
func (k *killing) check(t *testing.T, when string) {
	t.Helper()
	if k.holds != nil {
		k.holds(t, k, when)
		return
	}
	k.leavesNothing(t, when)
	if k.mayBeUnreadable && !k.readable(t) {
		k.run(t, undisturbed)
	}
	at, closeBoth := k.open(t, when)
	if at.Header == nil {
		return
	}
	defer closeBoth()
	var key *volume.Key
	opens := func(passphrase string) bool {
		got, err := volume.Unlock(context.Background(), at, []byte(passphrase), volume.AnySlot, nil)
		if err != nil {
			if !errors.Is(err, volume.ErrPassphrase) && !errors.Is(err, volume.ErrNoKeySlot) {
				t.Errorf("%s: %q: %v", when, passphrase, err)
			}
			return false
		}
		if key != nil {
			got.Close()
		} else {
			key = got
		}
		return true
	}
	for _, passphrase := range k.always {
		if !opens(passphrase) {
			t.Errorf("%s: %q opens nothing", when, passphrase)
		}
	}
	any := len(k.oneOf) == 0
	for _, passphrase := range k.oneOf {
		any = opens(passphrase) || any
	}
	if !any {
		t.Errorf("%s: none of %q opens", when, k.oneOf)
	}
	if len(k.always) == 0 && !opens(oldPassphrase) {
		// Nobody can look inside.
		k.holdsCiphertext(t, at, when)
		return
	}
	if key == nil {
		return
	}
	defer key.Close()
	k.holdsPlaintext(t, at, key, when)
	k.canBeChanged(t, at, key, when)
}

// leavesNothing checks that there are no files but those that were there, and a
// backup, if it is whole.
func (k *killing) leavesNothing(t *testing.T, when string) {
	t.Helper()
	for _, name := range strings.Fields(names(t, k.folder)) {
		_, wasThere := k.before[name]
		switch {
		case name == k.backup && k.backup != "":
			if content(t, filepath.Join(k.folder, name)) != string(k.backups) {
				t.Errorf("%s: %s is not the backup that it should be", when, name)
			}
		case !wasThere:
			t.Errorf("%s: it leaves %s", when, name)
		case name != "box" && name != k.headerFile() && !k.same(t, name):
			t.Errorf("%s: %s has changed", when, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.before)) {
		if !exists(filepath.Join(k.folder, name)) {
			t.Errorf("%s: %s is gone", when, name)
		}
	}
}

func (k *killing) readable(t *testing.T) bool {
	t.Helper()
	file, err := volume.PeekFile(filepath.Join(k.folder, k.headerFile()))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, err = volume.ReadHeader(volume.Stores{Header: file})
	return err == nil
}

// open opens the container for us alone: nobody has it locked. If it cannot be
// read, at is empty.
func (k *killing) open(t *testing.T, when string) (at volume.Stores, closeBoth func()) {
	t.Helper()
	data, err := volume.OpenFile(filepath.Join(k.folder, "box"), false)
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	header := data
	if k.detached {
		if header, err = volume.OpenFile(filepath.Join(k.folder, "head"), false); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	closeBoth = func() { data.Close(); header.Close() }
	if err := unix.Flock(int(header.OSFile().Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("%s: the header is locked: %v", when, err)
	}
	at = volume.Stores{Header: header, Data: data}
	if _, err := volume.ReadHeader(at); err != nil {
		t.Errorf("%s: %v", when, err)
		closeBoth()
		return volume.Stores{}, nil
	}
	return at, closeBoth
}

// keeps returns how much of the volume stays, in bytes.
func (k *killing) keeps() int64 {
	if k.kept > 0 {
		return k.kept
	}
	return int64(len(k.volume))
}

func (k *killing) holdsPlaintext(t *testing.T, at volume.Stores, key *volume.Key, when string) {
	t.Helper()
	v, err := volume.Open(at, key, volume.Options{ReadOnly: true})
	if err != nil {
		t.Errorf("%s: %v", when, err)
		return
	}
	defer v.Close()
	got := make([]byte, k.keeps())
	if _, err := v.ReadAt(got, 0); err != nil {
		t.Errorf("%s: %v", when, err)
	} else if !bytes.Equal(got, k.volume[:k.keeps()]) {
		t.Errorf("%s: the volume holds something else", when)
	}
}

func (k *killing) holdsCiphertext(t *testing.T, at volume.Stores, when string) {
	t.Helper()
	h, err := volume.ReadHeader(at)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, filepath.Join(k.folder, "box"))[h.PayloadOffset:], string(k.before["box"][h.PayloadOffset:]); got != want {
		t.Errorf("%s: the payload has changed", when)
	}
}

// canBeChanged adds a key to what is left.
func (k *killing) canBeChanged(t *testing.T, at volume.Stores, key *volume.Key, when string) {
	t.Helper()
	passphrase := []byte("added afterwards")
	slot, err := volume.AddKey(context.Background(), at.Header, key, passphrase, volume.AnySlot, volume.KeyParams{Iterations: 1000})
	if err != nil {
		t.Errorf("%s: add a key: %v", when, err)
		return
	}
	opened, err := volume.Unlock(context.Background(), at, passphrase, slot, nil)
	if err != nil {
		t.Errorf("%s: the key that was added: %v", when, err)
		return
	}
	opened.Close()
}

// commandIn is the program in a folder.
func commandIn(folder, stdin string, args ...string) *exec.Cmd {
	cmd := exec.Command("serpcrypt", args...)
	cmd.Dir = folder
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

func runIn(t *testing.T, folder, stdin string, args ...string) outcome {
	t.Helper()
	return runCommand(t, commandIn(folder, stdin, args...))
}
