package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

func TestProgressLine(t *testing.T) {
	for _, test := range []struct {
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 100 << 20, 2 * time.Second, "filling:   0%, 0 bytes of 100 MiB, 0 bytes/s"},
		{50 << 20, 100 << 20, 2 * time.Second, "filling:  50%, 50 MiB of 100 MiB, 25 MiB/s, 2s left"},
		{100 << 20, 100 << 20, 4 * time.Second, "filling: 100%, 100 MiB of 100 MiB, 25 MiB/s"},
		{50 << 20, 0, 2 * time.Second, "filling: 50 MiB, 25 MiB/s"},
	} {
		if got := progressLine("filling", test.done, test.total, test.elapsed); got != test.want {
			t.Errorf("progressLine(%d, %d, %v) = %q, want %q", test.done, test.total, test.elapsed, got, test.want)
		}
	}
}

func TestTimeLeft(t *testing.T) {
	for _, test := range []struct {
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 4, time.Second, ""},
		{1, 4, 2 * time.Second, ", 6s left"},
		{4, 4, 8 * time.Second, ""},
	} {
		if got := timeLeft(test.done, test.total, test.elapsed); got != test.want {
			t.Errorf("timeLeft(%d, %d, %v) = %q, want %q", test.done, test.total, test.elapsed, got, test.want)
		}
	}
}

// TestProgressOfPipes: how long a pipe will go on is not known, and one that is
// read slowly holds up the work.
func TestProgressOfPipes(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"import", `{ head -c 1 /dev/zero; sleep 1.2; head -c 1500000 /dev/zero; } | serpcrypt import --key-file key - box`, `reading: 1 MiB, [0-9.]+ [KM]iB/s`},
		{"export", `serpcrypt export --key-file key box - | { sleep 1.2; cat >/dev/null; }`, `exporting:  50%, 1 MiB of 2 MiB, [0-9.]+ [KM]iB/s, [0-9]+s left`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			box := newBox(t, "--size", "4M")
			if err := os.WriteFile(filepath.Join(filepath.Dir(box), "key"), []byte(testPassphrase), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", c.script)
			cmd.Dir = filepath.Dir(box)
			s := startOnTerminal(t, cmd)
			s.end(0, "\x1b[K")
			if !regexp.MustCompile(c.want).MatchString(s.seen) {
				t.Errorf("no %q in %q", c.want, s.seen)
			}
		})
	}
}
