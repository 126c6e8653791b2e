package main

import (
	"math"
	"os/exec"
	"strings"
	"testing"

	"serpcrypt/kdf"
	"serpcrypt/volume"
	"serpcrypt/volume/luks2"
)

// editLUKS2 changes what the header of a container says.
func editLUKS2(t *testing.T, path string, change func(h *luks2.Header)) {
	t.Helper()
	f, err := volume.OpenFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	found, err := luks2.Read(f, size)
	if err != nil {
		t.Fatal(err)
	}
	change(found.Header)
	if err := found.Header.Save(f); err != nil {
		t.Fatal(err)
	}
}

// TestUnknownRequirement: what this program does not know it leaves alone, by
// name.
func TestUnknownRequirement(t *testing.T) {
	box := newBox(t)
	editLUKS2(t, box, func(h *luks2.Header) { h.Config.Requirements.Mandatory = []string{"time-travel"} })
	before := content(t, box)
	if o := serpcrypt(t, "", "dump", box).must(t, 0); !strings.Contains(o.stdout, "\nRequirements:\ttime-travel \n") {
		t.Errorf("dump prints\n%s%s", o.stdout, o.stderr)
	}
	for _, args := range [][]string{{"verify"}, {"export", "-"}, {"key", "test"}, {"key", "remove"}, {"resize", "4M"}, {"config", "--label", "x"}} {
		words := append([]string{args[0]}, append(args[1:], box)...)
		switch args[0] {
		case "export", "resize":
			words = []string{args[0], box, args[1]}
		}
		o := serpcrypt(t, testPassphrase, words...)
		if o.code != exitBad || !strings.Contains(o.stderr, "time-travel") {
			t.Errorf("%v: exit code %d, want %d, with the requirement's name in\n%s", args, o.code, exitBad, o.stderr)
		}
	}
	if content(t, box) != before {
		t.Error("the container has changed")
	}
}

// TestTooLittleMemory: a key slot that takes more memory than there is, says so
// with both figures, and does not keep others from opening.
func TestTooLittleMemory(t *testing.T) {
	box := newBox(t)
	serpcrypt(t, testPassphrase+"\nmemory\n", "key", "add", "-q", box, "--pbkdf", "argon2id", "--pbkdf-memory", "64", "--pbkdf-force-iterations", "4").must(t, 0)
	editLUKS2(t, box, func(h *luks2.Header) { h.Keyslots[1].KDF.Memory = kdf.MaxArgon2Memory })
	// The address space is a limit that every test machine can have.
	limited := func(stdin string, args ...string) outcome {
		cmd := exec.Command("sh", append([]string{"-c", `ulimit -v 3000000; exec serpcrypt "$@"`, "sh"}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		return runCommand(t, cmd)
	}
	o := limited("memory", "key", "test", box, "-S", "1")
	if o.code != exitMemory || !strings.Contains(o.stderr, "the derivation takes 4096.0 MiB of memory, ") || !strings.Contains(o.stderr, "hint: close other programs") {
		t.Errorf("exit code %d, want %d\n%s", o.code, exitMemory, o.stderr)
	}
	limited(testPassphrase, "key", "test", box).must(t, 0)
	limited("", "dump", box).must(t, 0)
	limited("", "key", "list", box).must(t, 0)
}

// TestUselessSlots: one that is damaged and one for another key than the volume's
// are shown as such. They can be removed, but not instead of the last key.
func TestUselessSlots(t *testing.T) {
	box := newBox(t)
	for _, passphrase := range []string{"one", "two"} {
		serpcrypt(t, testPassphrase+"\n"+passphrase+"\n", "key", "add", "-q", box, "--pbkdf-force-iterations", "1000").must(t, 0)
	}
	editLUKS2(t, box, func(h *luks2.Header) {
		h.Keyslots[1].KDF.Hash = "nosuch"
		d := *h.Digests[0]
		d.Keyslots, d.Segments = []int{2}, nil
		h.Digests[0].Keyslots = []int{0, 1}
		h.Digests[1] = &d
	})
	if o := serpcrypt(t, "", "dump", box); !strings.Contains(o.stdout, "  2: luks2 (unbound)\n") {
		t.Errorf("dump prints\n%s%s", o.stdout, o.stderr)
	}
	if o := serpcrypt(t, "", "key", "list", box); !strings.Contains(o.stdout, "\n 1  invalid ") || !strings.Contains(o.stdout, "\n 2  unbound ") {
		t.Errorf("key list prints\n%s%s", o.stdout, o.stderr)
	}
	for _, args := range [][]string{{}, {"-S", "0"}} {
		o := serpcrypt(t, testPassphrase, append([]string{"key", "remove", box}, args...)...)
		if o.code != exitBusy || !strings.Contains(o.stderr, "key slot 0 is the last one") {
			t.Errorf("the last key, %v: exit code %d, want %d\n%s", args, o.code, exitBusy, o.stderr)
		}
	}
	for _, slot := range []string{"1", "2"} {
		serpcrypt(t, testPassphrase, "key", "remove", box, "-S", slot).must(t, 0)
	}
	serpcrypt(t, testPassphrase, "key", "test", box).must(t, 0)
}

// TestHeaderThatTakesNoMore: one whose text or sequence number is at its end is
// not changed, and the error says which.
func TestHeaderThatTakesNoMore(t *testing.T) {
	for field, edit := range map[string]func(h *luks2.Header){
		"json": func(h *luks2.Header) {
			const almostAll = luks2.MinSize - luks2.HeaderSize - 1000 // bytes
			h.Tokens[0] = &luks2.Token{Type: strings.Repeat("x", almostAll)}
		},
		"seqid": func(h *luks2.Header) { h.SeqID = math.MaxUint64 - 1 },
	} {
		box := newBox(t)
		editLUKS2(t, box, edit)
		before := content(t, box)
		o := serpcrypt(t, testPassphrase+"\nnew\n", "key", "add", "-q", box, "--pbkdf-force-iterations", "1000")
		if o.code != exitBad || !strings.Contains(o.stderr, "error: "+field+" at byte ") {
			t.Errorf("%s: exit code %d, want %d\n%s", field, o.code, exitBad, o.stderr)
		}
		if content(t, box) != before {
			t.Errorf("%s: the container has changed", field)
		}
		serpcrypt(t, testPassphrase, "verify", box).must(t, 0)
	}
}
