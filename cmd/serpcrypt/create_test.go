package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"serpcrypt/internal/secret"
	"serpcrypt/volume"
)

// badSync is a file whose sync fails once: when it has been called as often as
// left said. A kernel tells of a lost write only once, too.
type badSync struct {
	*volume.File
	left int
}

func (b *badSync) Sync() error {
	if b.left--; b.left == 0 {
		return syscall.EIO
	}
	return b.File.Sync()
}

// TestCreateHeedsEachSync: whichever sync fails, no container is published.
func TestCreateHeedsEachSync(t *testing.T) {
	passphrase, err := secret.New(8)
	if err != nil {
		t.Fatal(err)
	}
	defer passphrase.Close()
	for failing := 1; ; failing++ {
		want := &creation{
			path:   filepath.Join(t.TempDir(), "box"),
			size:   3 << 20,
			params: volume.Params{Cipher: volume.DefaultCipher, KeyBits: volume.DefaultKeyBits, Hash: volume.DefaultHash},
			cost:   slotCost{kdf: volume.PBKDF2, iterations: fewIterations},
		}
		places, err := want.findPlaces(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		disk := &badSync{places.data.store.(*volume.File), failing}
		places.data.store = disk
		_, err = makeContainer(t.Context(), want, places, passphrase)
		places.close()
		failed := disk.left <= 0
		if errors.Is(err, syscall.EIO) != failed || exists(want.path) == failed {
			t.Errorf("sync %d failed: %v, error: %v, published: %v", failing, failed, err, exists(want.path))
		}
		if !failed {
			// The old headers' end, the payload, and the header's two sectors.
			if syncs := failing - 1; syncs < 4 {
				t.Errorf("only %d syncs", syncs)
			}
			return
		}
	}
}

// TestCreateWithoutProc makes containers where there is no /proc, as in a jail.
func TestCreateWithoutProc(t *testing.T) {
	needNamespaces(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, create := range []string{"create", "create -q --force"} {
		words := inNamespace(dir, "mount -t tmpfs none /proc && serpcrypt "+create+" --size 3M --pbkdf-force-iterations 1000 -d key box")
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		runCommand(t, cmd).must(t, exitOK)
		if got := names(t, dir); got != "box key" {
			t.Errorf("%s: there are %s, want box and key", create, got)
		}
	}
	serpcrypt(t, "", "verify", "-d", filepath.Join(dir, "key"), filepath.Join(dir, "box")).must(t, exitOK)
}
