package secret

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/child"
	"serpcrypt/internal/skip"
)

func TestNewGivesZeroedLockedUndumpedMemory(t *testing.T) {
	for _, size := range []int{0, 1, 64, 4096, 4097, 256000} {
		b := newBuffer(t, size)
		if len(b.Bytes()) != size || b.Len() != size {
			t.Fatalf("New(%d): %d bytes, Len %d", size, len(b.Bytes()), b.Len())
		}
		if !bytes.Equal(b.Bytes(), make([]byte, size)) {
			t.Errorf("New(%d) is not zero", size)
		}
		flags := vmFlags(t, uintptr(unsafe.Pointer(unsafe.SliceData(b.pages))))
		want := []string{"dd", "wf"} // not dumped, wiped in a forked child
		if LockError() == nil {
			want = append(want, "lo") // locked
		}
		for _, f := range want {
			if !strings.Contains(flags+" ", " "+f+" ") {
				t.Errorf("New(%d): flags of the mapping are %q, want %q among them", size, flags, f)
			}
		}
		b.Close()
	}
}

func newBuffer(t *testing.T, size int) *Buffer {
	t.Helper()
	b, err := New(size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCopy(t *testing.T) {
	original := []byte("of all bytes")
	b, err := Copy(original)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	clear(original)
	if string(b.Bytes()) != "of all bytes" {
		t.Errorf("got %q", b.Bytes())
	}
}

// TestNoMemory: whoever asks for more than there is can say so and go on.
func TestNoMemory(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		// The addresses of a 32-bit program have room for what follows: take most of it.
		for range 3 {
			taken, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
			if err != nil {
				break
			}
			defer unix.Munmap(taken)
		}
	}
	tooMuch := math.MaxInt - 2*unix.Getpagesize()
	if b, err := New(tooMuch); b != nil || !errors.Is(err, unix.ENOMEM) {
		t.Errorf("New(%d): %v, want %v", tooMuch, err, unix.ENOMEM)
	}
	if s, free, err := Slice[[1 << 20]byte](tooMuch >> 20); s != nil || free != nil || !errors.Is(err, unix.ENOMEM) {
		t.Errorf("Slice: %v, want %v", err, unix.ENOMEM)
	}
}

// vmFlags returns the kernel's flags of the mapping that holds addr.
func vmFlags(t *testing.T, addr uintptr) string {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inside := false
	for s := bufio.NewScanner(f); s.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x ", &from, &to); n == 2 {
			inside = from <= addr && addr < to
		} else if flags, ok := strings.CutPrefix(s.Text(), "VmFlags:"); ok && inside {
			return flags
		}
	}
	t.Fatalf("no mapping holds %#x", addr)
	return ""
}

func TestTruncateAndCloseWipe(t *testing.T) {
	b := newBuffer(t, 100)
	for i := range b.Bytes() {
		b.Bytes()[i] = 0xAA
	}
	b.Truncate(60)
	if got := b.pages[60:100]; !bytes.Equal(got, make([]byte, 40)) {
		t.Errorf("cut-off bytes are %x", got)
	}
	if got, want := b.Bytes(), bytes.Repeat([]byte{0xAA}, 60); !bytes.Equal(got, want) {
		t.Errorf("kept bytes are %x", got)
	}
	b.Close()
	b.Close()
	var none *Buffer
	none.Close()
	if len(b.Bytes()) != 0 {
		t.Errorf("closed buffer has %d bytes", len(b.Bytes()))
	}
}

func TestWipe(t *testing.T) {
	b := bytes.Repeat([]byte{1}, 33)
	Wipe(b)
	if !bytes.Equal(b, make([]byte, 33)) {
		t.Errorf("got %x", b)
	}
}

func TestValue(t *testing.T) {
	type keys struct {
		words [7]uint32
		_     byte
	}
	v, free, err := Value[keys]()
	if err != nil {
		t.Fatal(err)
	}
	if *v != (keys{}) {
		t.Errorf("not zero: %v", *v)
	}
	v.words[6] = 1
	free()
	free()

	row, free, err := Slice[keys](300) // more than a page
	if err != nil {
		t.Fatal(err)
	}
	if len(row) != 300 || cap(row) != 300 {
		t.Errorf("%d values, room for %d", len(row), cap(row))
	}
	for i := range row {
		if row[i] != (keys{}) {
			t.Errorf("value %d is not zero: %v", i, row[i])
		}
		row[i].words[0] = 1
	}
	free()
	none, free, err := Slice[keys](0)
	if err != nil || len(none) != 0 {
		t.Errorf("%d values, want none (%v)", len(none), err)
	}
	free()

	type pointing struct{ _ [1]*int }
	defer func() {
		if recover() == nil {
			t.Error("a type with pointers is taken")
		}
	}()
	Value[pointing]()
}

func TestHardenProcess(t *testing.T) {
	const child = "SERPCRYPT_TEST_HARDEN"
	if os.Getenv(child) == "1" {
		if err := HardenProcess(); err != nil {
			t.Fatal(err)
		}
		dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if err != nil || dumpable != 0 {
			t.Errorf("dumpable is %d (%v)", dumpable, err)
		}
		var core unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil || core != (unix.Rlimit{}) {
			t.Errorf("core limit is %v (%v)", core, err)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHardenProcess$")
	cmd.Env = append(os.Environ(), child+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCore has a child, whose core dump is not limited, end by SIGABRT. What is
// in a Buffer is in no dump, and there is no dump of a hardened process at all.
func TestCore(t *testing.T) {
	const howEnv = "SERPCRYPT_TEST_CORE"
	if how := os.Getenv(howEnv); how != "" {
		abortWithSecrets(t, how == "hardened")
		return
	}
	run := func(how string) (dumped bool, core []byte) {
		dir := t.TempDir()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^TestCore$")
		cmd.Env = append(os.Environ(), howEnv+"="+how)
		cmd.Dir = dir
		aborts := child.Start(t, cmd, "", "ready")
		unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
		if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_CORE, &unlimited, nil); err != nil {
			t.Logf("%s: the limit of core dumps stays: %v", how, err)
		}
		_ = aborts.Wait()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !status.Signaled() || status.Signal() != unix.SIGABRT {
			t.Errorf("%s: it ended by %v", how, cmd.ProcessState)
		}
		files, err := filepath.Glob(filepath.Join(dir, "core*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			core = append(core, text...)
		}
		return status.CoreDump(), core
	}

	if dumped, core := run("hardened"); dumped || len(core) > 0 {
		t.Errorf("a hardened process was dumped: %v, %d bytes", dumped, len(core))
	}
	_, core := run("as it is")
	if len(core) == 0 {
		skip.Skip(t, "this system puts core dumps elsewhere, if it makes any")
	}
	if !bytes.Contains(core, coreMark('o')) {
		t.Error("what is in ordinary memory is not in the dump: is this how to find it?")
	}
	if bytes.Contains(core, coreMark('s')) {
		t.Error("a secret is in the dump")
	}
}

// coreMark makes bytes that stand nowhere else, and leaves no other copy.
func coreMark(kind byte) []byte {
	mark := make([]byte, 64)
	fillCoreMark(mark, kind)
	return mark
}

func fillCoreMark(mark []byte, kind byte) {
	for i := range mark {
		mark[i] = kind ^ byte(i*i+i*7)
	}
}

func abortWithSecrets(t *testing.T, hardened bool) {
	b := newBuffer(t, 64)
	fillCoreMark(b.Bytes(), 's')
	ordinary := coreMark('o')
	if hardened {
		if err := HardenProcess(); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("ready")
	_, _ = io.ReadAll(os.Stdin) // until the limit is raised
	signal.Reset(unix.SIGABRT)
	debug.SetTraceback("crash") // Go's own way to end with a dump
	_ = unix.Kill(os.Getpid(), unix.SIGABRT)
	time.Sleep(time.Minute)
	runtime.KeepAlive(ordinary)
	b.Close()
}
