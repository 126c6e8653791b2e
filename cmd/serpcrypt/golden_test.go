package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"serpcrypt/internal/skip"
)

// goldenEnv names a folder with more containers, too large to be part of this
// project.
const goldenEnv = "SERPCRYPT_GOLDEN"

func TestExportGolden(t *testing.T) {
	exportGolden(t, goldenFolder, 8)
}

func TestExportMoreGolden(t *testing.T) {
	folder := os.Getenv(goldenEnv)
	if folder == "" {
		skip.Skip(t, goldenEnv+" names no folder")
	}
	exportGolden(t, folder, 10)
}

// exportGolden exports each LUKS1 container of folder by each of its keys.
func exportGolden(t *testing.T, folder string, atLeast int) {
	notes, err := filepath.Glob(filepath.Join(folder, "[lq]*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	exports := 0
	for _, note := range notes {
		name := strings.TrimSuffix(filepath.Base(note), ".txt")
		if strings.HasPrefix(name, "l2-") || strings.Contains(name, "detached") {
			continue // other formats
		}
		t.Run(name, func(t *testing.T) {
			image := unpack(t, filepath.Join(folder, name+".img.xz"))
			values := readNote(t, note)
			for key, value := range values {
				if !strings.HasPrefix(key, "passphrase-") || !strings.HasSuffix(key, "-hex") {
					continue
				}
				passphrase, err := hex.DecodeString(value)
				if err != nil {
					t.Fatal(err)
				}
				args := []string{"export", image, "-"}
				if strings.Contains(string(passphrase), "\n") {
					args = append(args, "--key-file", "-")
				}
				checkExport(t, serpcrypt(t, string(passphrase), args...), values)
				exports++
			}
			if keyFile := filepath.Join(folder, name+".key"); exists(keyFile) {
				checkExport(t, serpcrypt(t, "", "export", image, "-", "--key-file", keyFile), values)
				part := []string{"--keyfile-offset", "7", "--keyfile-size", "61", "-S", "1"} // as the note says
				checkExport(t, serpcrypt(t, "", append(part, "export", image, "-", "--key-file", keyFile)...), values)
				exports += 2
			}
			if volumeKey, ok := values["volume-key"]; ok {
				key, err := hex.DecodeString(volumeKey)
				if err != nil {
					t.Fatal(err)
				}
				checkExport(t, serpcrypt(t, string(key), "export", image, "-", "--volume-key-file", "-"), values)
				exports++
			}
		})
	}
	if exports < atLeast {
		t.Errorf("only %d exports were tried", exports)
	}
}

func checkExport(t *testing.T, o outcome, values map[string]string) {
	t.Helper()
	o.must(t, 0)
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(o.stdout))); got != values["plaintext-sha256"] || got == "" {
		t.Errorf("plaintext has SHA-256 %s, want %s", got, values["plaintext-sha256"])
	}
}

// readNote reads the "key: value" lines at the start of a note.
func readNote(t *testing.T, path string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for line := range strings.Lines(content(t, path)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			break
		}
		values[key] = value
	}
	return values
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
