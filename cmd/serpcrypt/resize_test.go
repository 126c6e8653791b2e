package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"serpcrypt/volume"
	"serpcrypt/volume/luks2"
)

// TestInterruptedGrowth: a file whose growth is interrupted has its old length
// and content, and one whose growth is killed is a whole container between the
// two, which grows on.
func TestInterruptedGrowth(t *testing.T) {
	const wanted = 600 << 20
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		box := newBox(t)
		before := content(t, box)
		cmd := exec.Command("serpcrypt", "resize", box, "600M")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); sizeOf(t, box) == int64(len(before)); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it does not grow")
			}
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		code := exitCode(t, cmd.Wait())
		size := sizeOf(t, box)
		switch {
		case signal == syscall.SIGKILL && (size <= int64(len(before)) || size > wanted):
			t.Errorf("killed: the file has %d bytes", size)
		case signal != syscall.SIGKILL && (code != exitSignal+int(signal) || content(t, box) != before):
			t.Errorf("%v: exit code %d, and the file has %d bytes, not %d as before\n%s", signal, code, size, len(before), &stderr)
		}
		serpcrypt(t, testPassphrase, "verify", box).must(t, 0)
		serpcrypt(t, testPassphrase, "resize", box, "20M", "--force", "-q").must(t, 0)
		serpcrypt(t, testPassphrase, "verify", box).must(t, 0)
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestResizeTellsTheHeader: where it states how long the payload is, it states
// another size afterwards, in a file of its own too, and cryptsetup agrees. A
// smaller one is looked into before.
func TestResizeTellsTheHeader(t *testing.T) {
	stated := func(header string) int64 {
		t.Helper()
		f, err := volume.PeekFile(header)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		h, err := volume.ReadHeader(volume.Stores{Header: f})
		if err != nil {
			t.Fatal(err)
		}
		if cryptsetup, err := exec.LookPath("/usr/sbin/cryptsetup"); err == nil {
			o := runCommand(t, exec.Command(cryptsetup, "luksDump", header)).must(t, 0)
			if want := fmt.Sprintf("\tlength: %d [bytes]\n", h.PayloadSize); !strings.Contains(o.stdout, want) {
				t.Errorf("luksDump does not print %q\n%s", want, o.stdout)
			}
		}
		return h.PayloadSize
	}
	for _, detached := range []bool{false, true} {
		box := newBox(t, "--size", "4M")
		header, flags := box, []string{}
		if detached {
			box = filepath.Join(t.TempDir(), "box")
			header = box + ".header"
			serpcrypt(t, testPassphrase, "create", "--size", "2M", "-q", "--pbkdf-force-iterations", "1000", "--header", header, box).must(t, 0)
			flags = []string{"--header", header}
		}
		offset := sizeOf(t, box) - 2<<20
		editLUKS2(t, header, func(h *luks2.Header) { h.Segments[0].Size = 1 << 20 })
		resize := func(code int, payload, want int64, more ...string) outcome {
			t.Helper()
			args := append([]string{"resize", box, fmt.Sprint(offset + payload)}, append(flags, more...)...)
			o := serpcrypt(t, testPassphrase, args...).must(t, code)
			if got := stated(header); got != want {
				t.Errorf("detached=%v: %v: the header states %d bytes, want %d", detached, args, got, want)
			}
			if size := sizeOf(t, box); code == 0 && size != offset+want {
				t.Errorf("detached=%v: %v: the file has %d bytes, want %d", detached, args, size, offset+want)
			}
			serpcrypt(t, testPassphrase, append([]string{"verify", box}, flags...)...).must(t, 0)
			return o
		}
		if o := resize(0, 2<<20, 2<<20); !strings.Contains(o.stdout, "with a payload of 2 MiB") || !strings.Contains(o.stderr, "keeps its size until") {
			t.Errorf("into what is there: it prints\n%s%s", o.stdout, o.stderr)
		}
		if o := resize(0, 2<<20, 2<<20); !strings.Contains(o.stdout, "already") {
			t.Errorf("the same again: it prints\n%s", o.stdout)
		}
		resize(0, 4<<20, 4<<20)
		if o := resize(exitBad, 1<<20, 4<<20); !strings.Contains(o.stderr, "holds no file system that is known") {
			t.Errorf("smaller: it prints\n%s", o.stderr)
		}
		resize(0, 1<<20, 1<<20, "--force", "-q")
		// What is behind the payload is nobody's.
		editLUKS2(t, header, func(h *luks2.Header) { h.Segments[0].Size = 512 << 10 })
		resize(0, 768<<10, 768<<10)
	}
}
