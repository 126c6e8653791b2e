package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"serpcrypt/internal/golden"
)

func TestExportGolden(t *testing.T) { exportGolden(t, golden.Small(t)) }

func TestExportMoreGolden(t *testing.T) { exportGolden(t, golden.Big(t)) }

// exportGolden exports each container by each of its keys.
func exportGolden(t *testing.T, images []*golden.Image) {
	for _, image := range images {
		t.Run(image.Name, func(t *testing.T) {
			box := unpack(t, image)
			export := func(stdin []byte, options ...string) {
				t.Helper()
				o := serpcrypt(t, string(stdin), append([]string{"export", box, "-"}, options...)...).must(t, 0)
				if got := fmt.Sprintf("%x", sha256.Sum256([]byte(o.stdout))); got != image.PlaintextSHA256 {
					t.Errorf("plaintext has SHA-256 %s, want %s", got, image.PlaintextSHA256)
				}
			}
			for _, passphrase := range image.Passphrases {
				if bytes.ContainsRune(passphrase, '\n') {
					export(passphrase, "--key-file", "-")
				} else {
					export(passphrase)
				}
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
