package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"serpcrypt/internal/golden"
	"serpcrypt/internal/skip"
)

// TestDumpLikeCryptsetup holds dump against the real luksDump, byte by byte.
func TestDumpLikeCryptsetup(t *testing.T) {
	cryptsetup, err := exec.LookPath("cryptsetup")
	if err != nil {
		if cryptsetup, err = exec.LookPath("/usr/sbin/cryptsetup"); err != nil {
			skip.Skip(t, "cryptsetup is not installed")
		}
	}
	paths := []string{newBox(t, "-c", "serpent-cbc-essiv:sha256", "--hash", "sha512", "-S", "7")}
	for _, name := range []string{"l1-keyfile", "l1-ecb", "q-xts"} {
		paths = append(paths, unpack(t, golden.Named(t, name)))
	}
	for _, path := range paths {
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
