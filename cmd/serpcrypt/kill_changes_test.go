package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
