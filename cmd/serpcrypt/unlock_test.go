package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoKeySlot: nobody types a passphrase that nothing can open with.
func TestNoKeySlot(t *testing.T) {
	box := newBox(t, "--key-slot", "2")
	for _, command := range [][]string{{"verify", box}, {"export", box, "-"}, {"import", "/dev/null", box}} {
		for _, slot := range []string{"0", "3", "8"} {
			cmd := exec.Command("serpcrypt", append(command, "--key-slot", slot)...)
			// Standard input has no passphrase either, which is told only
			// if one is asked for.
			if o := runCommand(t, cmd).must(t, exitUsage); !strings.HasPrefix(o.stderr, "serpcrypt: error: no such key slot") {
				t.Errorf("%s: key slot %s\n%s", command[0], slot, o.stderr)
			}
		}
	}
}
