package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"serpcrypt/internal/golden"
	"serpcrypt/internal/skip"
	"serpcrypt/volume/luks2"
)

// needCryptsetup returns the real cryptsetup, or skips the test.
func needCryptsetup(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"cryptsetup", "/usr/sbin/cryptsetup"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	skip.Skip(t, "cryptsetup is not installed")
	return ""
}

// dumped are containers of all kinds, ours and those of others.
func dumped(t *testing.T) []string {
	t.Helper()
	paths := []string{
		newBox(t, "--type", "luks1", "-c", "serpent-cbc-essiv:sha256", "--hash", "sha512", "-S", "7"),
		newBox(t),
		newBox(t, "--label", "holiday", "--subsystem", "photos", "-c", "serpent-cbc-plain64", "-s", "192", "--sector-size", "512", "-S", "5"),
	}
	argon2 := filepath.Join(t.TempDir(), "argon2")
	serpcrypt(t, testPassphrase, "create", "--size", "3M", "-q", "--pbkdf", "argon2id", "--pbkdf-memory", "64", "--pbkdf-force-iterations", "4", argon2).must(t, 0)
	paths = append(paths, argon2, boxWithTokens(t))
	for _, name := range []string{"l1-keyfile", "l1-ecb", "q-xts"} {
		paths = append(paths, unpack(t, golden.Named(t, name)))
	}
	for _, image := range golden.LUKS2(t) {
		paths = append(paths, unpack(t, image))
	}
	return paths
}

// boxWithTokens has one of the kernel's keyring for a key slot and for none, and
// one that only another program knows.
func boxWithTokens(t *testing.T) string {
	t.Helper()
	box := newBox(t)
	token := func(kind, description string, slots ...int) *luks2.Token {
		member := luks2.Member{Name: "key_description", Value: json.RawMessage(description)}
		return &luks2.Token{Type: kind, Keyslots: slots, Unknown: []luks2.Member{member}}
	}
	editLUKS2(t, box, func(h *luks2.Header) {
		h.Tokens[0] = token(luks2.TokenKeyring, `"my: \u006bey"`, 0)
		h.Tokens[1] = token(luks2.TokenKeyring, `"another one"`)
		h.Tokens[7] = token("nobody-knows", `"a third one"`, 0)
	})
	return box
}

// TestDumpOfHostileTokens: what is no description is not shown, and what would
// play tricks on a terminal only in a harmless form.
func TestDumpOfHostileTokens(t *testing.T) {
	for description, want := range map[string]string{
		`"a\u001b[2J\nTokens:"`: "\tKey description: a\uFFFD[2J\uFFFDTokens:\n",
		`5`:                     "",
		`{"a":"b"}`:             "",
		`""`:                    "",
	} {
		box := newBox(t)
		editLUKS2(t, box, func(h *luks2.Header) {
			h.Tokens[0] = &luks2.Token{Type: luks2.TokenKeyring, Unknown: []luks2.Member{{Name: "key_description", Value: json.RawMessage(description)}}}
		})
		got := serpcrypt(t, "", "dump", box).must(t, 0).stdout
		if !strings.Contains(got, "\n  0: luks2-keyring\n"+want+"Digests:") {
			t.Errorf("%s: dump prints\n%s", description, got)
		}
	}
}

// TestDumpLikeCryptsetup holds dump against the real luksDump, byte by byte.
func TestDumpLikeCryptsetup(t *testing.T) {
	cryptsetup := needCryptsetup(t)
	for _, path := range dumped(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			want := runCommand(t, exec.Command(cryptsetup, "luksDump", path)).must(t, 0).stdout
			got := serpcrypt(t, "", "dump", path).must(t, 0).stdout
			ours, unlockTime, found := strings.Cut(got, "\nUnlock time, ")
			if ours != want {
				t.Errorf("dump prints\n%s\nand luksDump\n%s", ours, want)
			}
			if !found || !strings.Contains(unlockTime, "\tKey Slot ") {
				t.Errorf("no unlock time in\n%s", got)
			}
		})
	}
}

// TestMetadataLikeCryptsetup: the JSON text of a LUKS2 header means the same.
func TestMetadataLikeCryptsetup(t *testing.T) {
	cryptsetup := needCryptsetup(t)
	compared := 0
	for _, path := range dumped(t) {
		var d headerDocument
		if err := json.Unmarshal([]byte(serpcrypt(t, "", "dump", "--json", path).must(t, 0).stdout), &d); err != nil {
			t.Fatal(err)
		}
		if d.LUKS2 == nil {
			continue
		}
		var got, want any
		if err := json.Unmarshal(d.LUKS2.Metadata, &got); err != nil {
			t.Fatal(err)
		}
		o := runCommand(t, exec.Command(cryptsetup, "luksDump", "--dump-json-metadata", path)).must(t, 0)
		if err := json.Unmarshal([]byte(o.stdout), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the metadata are\n%s\nand cryptsetup's\n%s", filepath.Base(path), d.LUKS2.Metadata, o.stdout)
		}
		compared++
	}
	if compared < 6 {
		t.Errorf("only %d containers were compared", compared)
	}
}

// TestCryptsetupFindsNothingToRepair in headers that our commands leave.
func TestCryptsetupFindsNothingToRepair(t *testing.T) {
	cryptsetup := needCryptsetup(t)
	for _, format := range []string{"luks1", "luks2"} {
		box := newBox(t, "--type", format)
		check := func(after string) {
			t.Helper()
			before := content(t, box)
			o := runCommand(t, exec.Command(cryptsetup, "repair", "-q", "-v", box)).must(t, 0)
			if content(t, box) != before || strings.Contains(o.stdout+o.stderr, "epair") {
				t.Errorf("%s after %s: repaired\n%s%s", format, after, o.stdout, o.stderr)
			}
			runCommand(t, exec.Command(cryptsetup, "luksDump", box)).must(t, 0)
		}
		check("create")
		both := testPassphrase + "\nnew\n"
		key := func(stdin, command string, flags ...string) {
			t.Helper()
			serpcrypt(t, stdin, append([]string{"key", command, "-q", box}, flags...)...).must(t, 0)
			check("key " + command)
		}
		key(both, "add", "--pbkdf-force-iterations", "1000", "-S", "3")
		key(both, "change", "--pbkdf-force-iterations", "1000")
		key("new", "remove", "-S", "3")
		serpcrypt(t, "", "config", box, "--uuid", "").must(t, 0)
		check("config")
		serpcrypt(t, "", "resize", box, "5M").must(t, 0)
		check("resize")
	}
}

func TestDumpJSON(t *testing.T) {
	image := unpack(t, golden.Named(t, "l1-lrw-benbi-384-sha1"))
	var d headerDocument
	if err := json.Unmarshal([]byte(serpcrypt(t, "", "dump", "--json", image).must(t, 0).stdout), &d); err != nil {
		t.Fatal(err)
	}
	if d.Type != "LUKS1" || d.Version != 1 || d.UUID != "13643ddc-bee0-4ac6-bf98-4e2a0061732e" || d.Cipher != "serpent" ||
		d.Mode != "lrw-benbi" || d.Hash != "sha1" || d.KeyBits != 384 || d.PayloadOffset != 2097152 || d.DigestIterations != 1000 ||
		d.Digest != "a0a88a5764678ce7e3d7f2c58fb39c4b8d79c547" ||
		d.DigestSalt != "771592f1f91d05327e9b440226df8adfe62c11b2ac73d43f55154b7eea7d7178" {
		t.Errorf("the header's fields are %+v", d)
	}
	if len(d.KeySlots) != 8 || d.KeySlots[0].State != "enabled" || d.KeySlots[0].Iterations != 1000 || d.KeySlots[0].Stripes != 4000 ||
		d.KeySlots[0].MaterialOffset != 4096 || d.KeySlots[0].UnlockSeconds == nil || d.KeySlots[0].SingleLane == nil || d.KeySlots[1].State != "disabled" || d.KeySlots[1].UnlockSeconds != nil || d.KeySlots[1].SingleLane != nil {
		t.Errorf("the key slots are %+v", d.KeySlots)
	}
}
