package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
