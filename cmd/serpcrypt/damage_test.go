package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"serpcrypt/volume"
)

// TestDamagedHeader puts each field of the header out of range.
func TestDamagedHeader(t *testing.T) {
	box := newBox(t, "--type", "luks1")
	whole := content(t, box)
	const slot0, slot3 = 208, 208 + 3*48
	for _, test := range []struct {
		name   string
		offset int64
		bytes  string
		want   string // part of the message
	}{
		{"magic", 2, "X", "magic at byte 0"},
		{"version", 6, "\x00\x03", "version at byte 6"},
		{"cipher", 8, "twofish\x00", "cipher name at byte 8"},
		{"cipher is no text", 8, "\xff\x1b[2J", "cipher name at byte 8"},
		{"mode", 40, "xts-plain65", "cipher mode at byte 40"},
		{"hash", 72, "md5\x00", "hash at byte 72"},
		{"hash without end", 72, strings.Repeat("a", 32), "hash at byte 72"},
		{"payload before the slots", 104, "\x00\x00\x00\x08", "key slot 0: material sector at byte 248"},
		{"payload beyond the end", 104, "\x7f\xff\xff\xff", "payload sector at byte 104"},
		{"no key", 108, "\x00\x00\x00\x00", "key bytes at byte 108"},
		{"huge key", 108, "\xff\xff\xff\xff", "key bytes at byte 108"},
		{"digest iterations", 164, "\x00\x00\x00\x00", "digest iterations at byte 164"},
		{"UUID", 168, "no-UUID", "UUID at byte 168"},
		{"slot's iterations", slot0 + 4, "\x00\x00\x00\x00", "key slot 0: iterations at byte 212"},
		{"slot's material in the header", slot3 + 40, "\x00\x00\x00\x01", "key slot 3: material sector at byte 392"},
		{"slot's material beyond the payload", slot3 + 40, "\x7f\xff\xff\xff", "key slot 3: material sector at byte 392"},
		{"slot's material in another's", slot3 + 40, "\x00\x00\x00\x08", "key slot 3: material sector at byte 392"},
		{"slot's stripes", slot3 + 44, "\xff\xff\xff\xff", "key slot 3: stripes at byte 396"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "box")
			damaged := []byte(whole)
			copy(damaged[test.offset:], test.bytes)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			runs := []outcome{
				serpcrypt(t, testPassphrase, "verify", path),
				serpcrypt(t, testPassphrase, "export", path, "-"),
				serpcrypt(t, testPassphrase, "import", "/dev/null", path),
			}
			if !strings.HasPrefix(test.want, "payload") { // which dump does not look at
				runs = append(runs, serpcrypt(t, "", "dump", path), serpcrypt(t, "", "key", "list", path))
			}
			for _, o := range runs {
				if o.code != exitBad || !strings.Contains(o.stderr, test.want) {
					t.Errorf("exit code %d, want %d, with %q in\n%s%s", o.code, exitBad, test.want, o.stdout, o.stderr)
				}
				if strings.Contains(o.stdout+o.stderr, "\x1b") {
					t.Errorf("an escape sequence of the header reaches the terminal: %q", o.stdout+o.stderr)
				}
			}
			if content(t, path) != string(damaged) {
				t.Error("the container was changed")
			}
		})
	}
}

// TestDetachedHeader: the header of a payload in another file can be looked at
// and no more.
func TestDetachedHeader(t *testing.T) {
	box := newBox(t, "--type", "luks1")
	poke(t, box, 104, "\x00\x00\x00\x00")
	serpcrypt(t, "", "dump", box).must(t, 0)
	for _, args := range [][]string{{"verify", box}, {"export", box, "-"}, {"import", "/dev/null", box}} {
		o := serpcrypt(t, testPassphrase, args...)
		if o.code != exitBad || !strings.Contains(o.stderr, "payload sector at byte 104") {
			t.Errorf("%v: exit code %d\n%s", args, o.code, o.stderr)
		}
	}
}

// TestDamagedSlot: a slot that is neither enabled nor disabled keeps nobody
// from using the others, and verify tells.
func TestDamagedSlot(t *testing.T) {
	box := newBox(t, "--type", "luks1")
	poke(t, box, 208+3*48, "\x00\x00\x00\x01")
	if o := serpcrypt(t, "", "dump", box).must(t, 0); !strings.Contains(o.stdout, "Key Slot 3: INVALID\n") {
		t.Errorf("dump prints\n%s", o.stdout)
	}
	serpcrypt(t, testPassphrase, "export", box, "-").must(t, 0)
	o := serpcrypt(t, testPassphrase, "verify", box).must(t, exitBad)
	if !strings.Contains(o.stderr, "key slot 3: active at byte 352") || !strings.Contains(o.stdout, "  payload      passed") {
		t.Errorf("verify prints\n%s%s", o.stdout, o.stderr)
	}
}

// TestBusy: a container that somebody has open can be looked at, and no more.
func TestBusy(t *testing.T) {
	box := newBox(t)
	held, err := volume.OpenFile(box, false)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for _, args := range [][]string{
		{"verify", box},
		{"export", box, "-"},
		{"import", "/dev/null", box},
		{"create", "--force", "-q", "--size", "3M", box},
		{"export", "--force", "-q", newBox(t), box},
	} {
		o := serpcrypt(t, testPassphrase, args...)
		if o.code != exitBusy || !strings.Contains(o.stderr, "error: in use: "+box) || !strings.Contains(o.stderr, "hint: serpcrypt status") {
			t.Errorf("%v: exit code %d\n%s", args, o.code, o.stderr)
		}
	}
	serpcrypt(t, "", "dump", box).must(t, 0)
}

// TestReadTogether: who only reads a container keeps out no other reader.
func TestReadTogether(t *testing.T) {
	box := newBox(t)
	held, err := volume.OpenFile(box, true)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	serpcrypt(t, testPassphrase, "verify", box).must(t, 0)
	serpcrypt(t, testPassphrase, "export", box, "-").must(t, 0)
	serpcrypt(t, testPassphrase, "import", "/dev/null", box).must(t, exitBusy)
}

// TestSecretsStaySecret: no message holds the passphrase or the volume key.
func TestSecretsStaySecret(t *testing.T) {
	key := strings.Repeat("0123456789abcdef", 4)
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	box := filepath.Join(t.TempDir(), "box")
	var said string
	for _, args := range [][]string{
		{"create", "--debug", "--size", "3M", "--pbkdf-force-iterations", "1000", "--volume-key-file", keyFile, box},
		{"verify", "--debug", box},
		{"verify", "--debug", "--json", box},
		{"dump", "--debug", box},
	} {
		o := serpcrypt(t, testPassphrase, args...).must(t, 0)
		said += o.stdout + o.stderr
	}
	if !strings.Contains(said, "debug: ") {
		t.Error("--debug tells nothing")
	}
	for _, secret := range []string{testPassphrase, key, fmt.Sprintf("%x", key)} {
		if strings.Contains(said, secret) {
			t.Errorf("%q is in\n%s", secret, said)
		}
	}
}
