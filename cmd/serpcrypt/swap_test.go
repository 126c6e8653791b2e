package main

import (
	"os"
	"strings"
	"testing"

	"serpcrypt/internal/skip"
)

// TestWarnOfSwap: whatever holds keys says so, once, if they may be swapped out,
// and does its work all the same.
func TestWarnOfSwap(t *testing.T) {
	s := newOpenSession(t)
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can open its container without the right to lock memory")
	}
	s.run("serpcrypt", "create", "--size", "20M", "--fs", "ext4", "--pbkdf-force-iterations", "1000", "-d", "key", "box.luks")
	s.run("sh", "-c", "echo another > other")
	for _, command := range []string{
		"create --size 3M --pbkdf-force-iterations 1000 -q -d key new",
		"verify -d key box.luks",
		"export -d key box.luks out",
		"import -d key out box.luks",
		"open --test-passphrase -d key box.luks",
		"key test -d key box.luks",
		"key add -d key --new-keyfile other --pbkdf-force-iterations 1000 box.luks",
		"key remove -q -d key -S 1 box.luks",
		"open -d key box.luks box",
	} {
		const script = `ulimit -l 0 && exec setpriv --bounding-set=-ipc_lock serpcrypt "$@"`
		o := s.outcome(append([]string{"sh", "-c", script, "sh"}, strings.Fields(command)...)...).must(t, 0)
		if strings.Count(o.stderr, "warning: memory for keys cannot be locked") != 1 || !strings.Contains(o.stderr, "use encrypted swap space") {
			t.Errorf("%s says\n%s", command, o.stderr)
		}
	}
	s.run("sh", "-c", "echo works > box/file && grep works box/file")
	s.run("serpcrypt", "close", "box")
}
