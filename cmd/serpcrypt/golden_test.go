package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/golden"
)

func TestExportGolden(t *testing.T) { exportGolden(t, golden.Small(t)) }

func TestExportGoldenLUKS2(t *testing.T) { exportGolden(t, golden.LUKS2(t)) }

func TestExportMoreGolden(t *testing.T) { exportGolden(t, golden.Big(t)) }

// ignoredSlots are the key slots, counted from 1, that are only tried if they
// are named, as the notes of the images say.
var ignoredSlots = map[string]int{"l2-slots-xts-plain64-512-s4096": 5}

// exportGolden exports each container by each of its keys.
func exportGolden(t *testing.T, images []*golden.Image) {
	for _, image := range images {
		t.Run(image.Name, func(t *testing.T) {
			box := unpack(t, image)
			export := func(stdin []byte, options ...string) {
				t.Helper()
				o := serpcrypt(t, string(stdin), append([]string{"export", box, "-"}, options...)...).must(t, 0)
				checkPlaintext(t, image, o.stdout)
			}
			for slot, passphrase := range image.Passphrases {
				var options []string
				if bytes.ContainsRune(passphrase, '\n') {
					options = []string{"--key-file", "-"}
				}
				if ignoredSlots[image.Name] == slot+1 {
					serpcrypt(t, string(passphrase), "export", box, "-").must(t, exitPermission)
					options = append(options, "-S", fmt.Sprint(slot))
				}
				export(passphrase, options...)
			}
			if image.KeyFile != "" {
				export(nil, "--key-file", image.KeyFile)
				export(nil, "--key-file", image.KeyFile, "--keyfile-offset", "7", "--keyfile-size", "61", "-S", "1") // as its note says
			}
			if image.VolumeKey != nil {
				export(image.VolumeKey, "--volume-key-file", "-")
			}
		})
	}
}

// TestDetachedGolden exports a container whose header cryptsetup has put into a
// file of its own.
func TestDetachedGolden(t *testing.T) {
	for _, image := range golden.Detached(t) {
		box, header := unpack(t, image), filepath.Join(t.TempDir(), "header")
		if err := os.WriteFile(header, image.UnpackHeader(t), 0o600); err != nil {
			t.Fatal(err)
		}
		for slot, passphrase := range image.Passphrases {
			o := serpcrypt(t, string(passphrase), "export", box, "-", "--header", header).must(t, 0)
			checkPlaintext(t, image, o.stdout)
			opensSlot(t, box, string(passphrase), slot, "--header", header)
			opensSlot(t, header, string(passphrase), slot)
			serpcrypt(t, string(passphrase), "verify", box, "--header", header).must(t, 0)
		}
	}
}

func checkPlaintext(t *testing.T, image *golden.Image, plaintext string) {
	t.Helper()
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(plaintext))); got != image.PlaintextSHA256 {
		t.Errorf("plaintext has SHA-256 %s, want %s", got, image.PlaintextSHA256)
	}
}

// TestGoldenByEachKernel chooses each kernel by flag and by environment, for a
// container of each mode.
func TestGoldenByEachKernel(t *testing.T) {
	for _, name := range []string{"l1-cbc-essiv", "l1-ctr", "l1-ecb", "l1-lrw", "q-xts"} {
		image := golden.Named(t, name)
		box := unpack(t, image)
		for _, kernel := range serpent.Kernels() {
			for way, how := range map[string]struct{ flags, environment []string }{
				"flag":        {[]string{"--kernel", kernel.String()}, []string{"SERPCRYPT_KERNEL=auto"}},
				"environment": {nil, []string{"SERPCRYPT_KERNEL=" + kernel.String()}},
			} {
				t.Run(fmt.Sprintf("%s,%v by %s", image.Name, kernel, way), func(t *testing.T) {
					run := func(args ...string) outcome {
						cmd := exec.Command("serpcrypt", append(args, how.flags...)...)
						cmd.Env = append(os.Environ(), how.environment...)
						cmd.Stdin = bytes.NewReader(image.VolumeKey)
						return runCommand(t, cmd).must(t, 0)
					}
					checkPlaintext(t, image, run("export", box, "-", "--volume-key-file", "-").stdout)
					var report struct {
						OK     bool
						Kernel string
					}
					o := run("verify", box, "--volume-key-file", "-", "--json")
					if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
						t.Fatal(err)
					}
					if !report.OK || report.Kernel != kernel.String() {
						t.Errorf("verify: got %+v, want ok by %v", report, kernel)
					}
				})
			}
		}
	}
}
