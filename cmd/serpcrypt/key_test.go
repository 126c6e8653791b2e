package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// forEachFormat runs a test with a container of each format, which opens with
// testPassphrase.
func forEachFormat(t *testing.T, test func(t *testing.T, box string)) {
	for _, format := range []string{"luks1", "luks2"} {
		t.Run(format, func(t *testing.T) { test(t, newBox(t, "--type", format)) })
	}
}

// addKey adds a key by flags, with what the new one is on standard input if it is
// no key file, and returns the output of the command.
func addKey(t *testing.T, box, stdin string, flags ...string) outcome {
	t.Helper()
	return serpcrypt(t, testPassphrase+"\n"+stdin, append([]string{"key", "add", "-q", "--pbkdf-force-iterations", "1000", box}, flags...)...)
}

// opensSlot checks that a passphrase opens the key slot, or none if it is -1.
func opensSlot(t *testing.T, box, stdin string, slot int, flags ...string) {
	t.Helper()
	o := serpcrypt(t, stdin, append([]string{"key", "test", box}, flags...)...)
	switch {
	case slot < 0 && o.code != exitPermission:
		t.Errorf("exit code %d, want %d, for a key that should not open\n%s%s", o.code, exitPermission, o.stdout, o.stderr)
	case slot >= 0 && !strings.Contains(o.stdout, fmt.Sprintf("Key slot %d of ", slot)):
		t.Errorf("key slot %d does not open: %s%s", slot, o.stdout, o.stderr)
	}
}

// TestPassphraseLengths: at 64 bytes HMAC begins to hash its key, at 512 the
// program ends.
func TestPassphraseLengths(t *testing.T) {
	forEachFormat(t, func(t *testing.T, box string) {
		const long = 520
		letters := strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", long/36+1)
		for i, n := range []int{0, 63, 64, 65, 511, 512} {
			passphrase := letters[i : i+n] // each begins differently
			addKey(t, box, passphrase+"\n").must(t, 0)
			opensSlot(t, box, passphrase+"\n", i+1)
			if n > 0 { // nothing at all is no empty line
				opensSlot(t, box, passphrase, i+1)
				opensSlot(t, box, passphrase[:n-1]+"\n", -1)
			}
			if n < maxPassphrase {
				opensSlot(t, box, passphrase+"!\n", -1)
			}
		}
		before := content(t, box)
		for _, o := range []outcome{
			addKey(t, box, letters[:maxPassphrase+1]+"\n"),
			serpcrypt(t, letters[:maxPassphrase+1]+"\n", "key", "test", box),
		} {
			if o.code != exitUsage || !strings.Contains(o.stderr, "the passphrase is longer than 512 bytes") {
				t.Errorf("513 bytes: exit code %d\n%s", o.code, o.stderr)
			}
		}
		if content(t, box) != before {
			t.Error("the container has changed")
		}
	})
}

func TestKeyFileSituations(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	forEachFormat(t, func(t *testing.T, box string) {
		nul := file("nul", []byte("\x00a\x00b"))
		addKey(t, box, "", "--new-keyfile", nul).must(t, 0)
		opensSlot(t, box, "", 1, "--key-file", nul)
		opensSlot(t, box, "", -1, "--key-file", file("no nul", []byte("a\x00b")))
		opensSlot(t, box, "", -1, "--key-file", file("cut at nul", []byte("\x00a")))

		line := file("line", []byte("secret\n"))
		addKey(t, box, "secret\n").must(t, 0)
		o := serpcrypt(t, "", "key", "test", box, "--key-file", line).must(t, exitPermission)
		if !strings.Contains(o.stderr, hintNewline) {
			t.Errorf("a newline too much: %s", o.stderr)
		}
		opensSlot(t, box, "", 2, "--key-file", line, "--keyfile-size", "6")
		addKey(t, box, "", "--new-keyfile", line).must(t, 0)
		opensSlot(t, box, "", 3, "--key-file", line)

		largest := file("largest", bytes.Repeat([]byte("k"), maxKeyFile))
		addKey(t, box, "", "--new-keyfile", largest).must(t, 0)
		opensSlot(t, box, "", 4, "--key-file", largest)
		larger := file("larger", bytes.Repeat([]byte("k"), maxKeyFile+1))
		opensSlot(t, box, "", 4, "--key-file", larger, "--keyfile-size", fmt.Sprint(maxKeyFile))
		opensSlot(t, box, "", 4, "--key-file", larger, "--keyfile-offset", "1")

		before := content(t, box)
		for _, test := range []struct {
			flags []string
			code  int
			want  string
		}{
			{[]string{"--new-keyfile", larger}, exitUsage, "it is larger than 8388608 bytes"},
			{[]string{"--new-keyfile", line, "--new-keyfile-offset", "8"}, exitBad, "it ends before the 8 bytes that are to be skipped"},
			{[]string{"--new-keyfile", line, "--new-keyfile-offset", "7"}, exitUsage, "it is empty"},
			{[]string{"--new-keyfile", line, "--new-keyfile-size", "8"}, exitBad, "it has only 7 bytes of the 8"},
			{[]string{"--new-keyfile", line, "--new-keyfile-size", "8388609"}, exitUsage, "--new-keyfile-size must lie between 1 and 8388608 bytes"},
			{[]string{"--new-keyfile", line, "--new-keyfile-offset", "-1"}, exitUsage, "--new-keyfile-offset must not be negative"},
		} {
			if o := addKey(t, box, "", test.flags...); o.code != test.code || !strings.Contains(o.stderr, test.want) {
				t.Errorf("%v: exit code %d, want %d, with %q in\n%s", test.flags, o.code, test.code, test.want, o.stderr)
			}
		}
		if content(t, box) != before {
			t.Error("the container has changed")
		}
	})
}

// TestLettersBeyondASCII: what looks alike may be other bytes, and another key.
func TestLettersBeyondASCII(t *testing.T) {
	const composed, decomposed = "\u00e9l\u00e8ve\n", "e\u0301le\u0300ve\n"
	forEachFormat(t, func(t *testing.T, box string) {
		o := serpcrypt(t, testPassphrase+"\n"+composed, "key", "add", "--pbkdf-force-iterations", "1000", box).must(t, 0)
		if !strings.Contains(o.stderr, hintNotASCII) {
			t.Errorf("no hint in\n%s", o.stderr)
		}
		opensSlot(t, box, composed, 1)
		o = serpcrypt(t, decomposed, "key", "test", box).must(t, exitPermission)
		if !strings.Contains(o.stderr, hintOtherBytes) {
			t.Errorf("no hint in\n%s", o.stderr)
		}
		addKey(t, box, decomposed).must(t, 0)
		opensSlot(t, box, decomposed, 2)
	})
}

// TestLastOfEightSlots: that it is found, and that a bit of its material is
// enough to lose it, which nothing tells from a wrong passphrase.
func TestLastOfEightSlots(t *testing.T) {
	forEachFormat(t, func(t *testing.T, box string) {
		for slot := 1; slot < 8; slot++ {
			addKey(t, box, fmt.Sprintf("key %d\n", slot)).must(t, 0)
		}
		opensSlot(t, box, "key 7\n", 7)
		h, err := readHeaderOf(box)
		if err != nil {
			t.Fatal(err)
		}
		for _, slot := range []int{7, 0} {
			at := h.Slots[slot].MaterialOffset + 70000
			poke(t, box, at, string([]byte{content(t, box)[at] ^ 0x10}))
		}
		o := serpcrypt(t, "key 7\n", "key", "test", box).must(t, exitPermission)
		wrong := serpcrypt(t, "wrong\n", "key", "test", box).must(t, exitPermission)
		if !strings.Contains(o.stderr, hintDamagedSlot) || o.stderr != wrong.stderr {
			t.Errorf("a damaged slot gives\n%s\nand a wrong passphrase\n%s", o.stderr, wrong.stderr)
		}
		opensSlot(t, box, testPassphrase, -1)
		opensSlot(t, box, "key 6\n", 6)
	})
}
