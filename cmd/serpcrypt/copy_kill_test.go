package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"serpcrypt/internal/fsprobe"
	"serpcrypt/volume"
)

// copies bring plaintext in or out: nobody may take a part of it for the whole.
var copies = []killable{
	{
		name:    "import",
		prepare: makeImage,
		args:    []string{"import", "image", "box"},
		stdin:   "old\n",
		holds:   oldNewOrMarked,
	},
	{
		name:  "export",
		args:  []string{"export", "box", "out"},
		stdin: "old\n",
		holds: func(t *testing.T, k *killing, when string) {
			if left := names(t, k.folder); left == "box out" {
				k.isExported(t, "out", when)
			} else if left != "box" {
				t.Errorf("%s: it leaves %s", when, left)
			}
			if !k.same(t, "box") {
				t.Errorf("%s: the container has changed", when)
			}
		},
	},
	{
		name:    "export in place of another",
		prepare: func(t *testing.T, folder string) { copyFile(t, makeImageIn(t, folder), filepath.Join(folder, "out")) },
		args:    []string{"export", "--force", "-q", "--sparse", "box", "out"},
		stdin:   "old\n",
		holds: func(t *testing.T, k *killing, when string) {
			// For a moment the new one, which is whole, has another name.
			if hidden, err := filepath.Glob(filepath.Join(k.folder, ".out.*")); err == nil && len(hidden) == 1 {
				k.isExported(t, filepath.Base(hidden[0]), when)
				if err := os.Remove(hidden[0]); err != nil {
					t.Fatal(err)
				}
			}
			if !k.same(t, "out") {
				k.isExported(t, "out", when)
			}
			if left := names(t, k.folder); left != "box image out" {
				t.Errorf("%s: it leaves %s", when, left)
			}
		},
	},
}

func makeImage(t *testing.T, folder string) { makeImageIn(t, folder) }

// makeImageIn makes what is imported: more than a chunk, and not all that the
// volume holds.
func makeImageIn(t *testing.T, folder string) (path string) {
	t.Helper()
	image := make([]byte, 3<<20+17)
	rand.NewChaCha8([32]byte{1}).Read(image)
	path = filepath.Join(folder, "image")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, []byte(content(t, from)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (k *killing) isExported(t *testing.T, name, when string) {
	t.Helper()
	if content(t, filepath.Join(k.folder, name)) != string(k.volume) {
		t.Errorf("%s: %s is not all of the volume", when, name)
	}
}

// oldNewOrMarked: a volume with a part of the image says so.
func oldNewOrMarked(t *testing.T, k *killing, when string) {
	t.Helper()
	k.leavesNothing(t, when)
	at, closeBoth := k.open(t, when)
	if at.Header == nil {
		return
	}
	defer closeBoth()
	key, err := volume.Unlock(t.Context(), at, []byte(oldPassphrase), volume.AnySlot, nil)
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	defer key.Close()
	v, err := volume.Open(at, key, volume.Options{ReadOnly: true})
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	defer v.Close()
	got := make([]byte, v.Size())
	if _, err := v.ReadAt(got, 0); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	image := k.before["image"]
	isNew := bytes.Equal(got[:len(image)], image)
	isMarked := bytes.HasPrefix(got, fsprobe.UnfinishedMark())
	isOld := bytes.Equal(got[:len(image)], k.volume[:len(image)])
	switch {
	case !bytes.Equal(got[len(image):], k.volume[len(image):]):
		t.Errorf("%s: what lies behind the image has changed", when)
	case !isNew && !isMarked && !isOld:
		t.Errorf("%s: the volume is neither the old one nor the image, and does not say so", when)
	}
}
