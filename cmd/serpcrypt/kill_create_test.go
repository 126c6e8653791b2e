package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"serpcrypt/volume"
)

// creations make containers: as long as one is not whole, nothing looks like it.
var creations = []killable{
	{
		name:  "create",
		args:  append([]string{"create", "--type", "FORMAT", "--size", "4M", "box"}, quickly...),
		stdin: "new\n",
		empty: true,
		holds: nothingOrNew,
	},
	{
		name:     "create, detached header",
		args:     append([]string{"create", "--type", "FORMAT", "--size", "1M", "--header", "head", "box"}, quickly...),
		stdin:    "new\n",
		empty:    true,
		detached: true,
		holds:    nothingOrNew,
	},
	{
		name:  "create in place of another",
		args:  append([]string{"create", "--type", "FORMAT", "--size", "4M", "--force", "box"}, quickly...),
		stdin: "new\n",
		holds: func(t *testing.T, k *killing, when string) {
			// For a moment the new one, which is whole, has another name.
			if hidden, err := filepath.Glob(filepath.Join(k.folder, ".box.*")); err == nil && len(hidden) == 1 {
				if !k.same(t, "box") || !noneOrNew(t, hidden[0], hidden[0], when) {
					t.Errorf("%s: it leaves %s", when, names(t, k.folder))
				}
				return
			}
			if !k.unchanged(t) {
				nothingOrNew(t, k, when)
			}
		},
	},
	{
		name:  "create on a device",
		args:  append([]string{"create", "--type", "FORMAT", "--force", "DEVICE"}, quickly...),
		stdin: "new\n",
		empty: true,
		makeDevice: func(t *testing.T, k *killing) string {
			device := loopDevice(t, killedSize)
			runIn(t, k.folder, "old\n", append([]string{"create", "--type", k.format, device}, quickly...)...).must(t, 0)
			return device
		},
		holds: func(t *testing.T, k *killing, when string) {
			if left := names(t, k.folder); left != "" {
				t.Errorf("%s: it leaves %s", when, left)
			}
			if !k.unchanged(t) {
				noneOrNew(t, k.device, k.device, when)
			}
		},
	},
}

// nothingOrNew: there is no file, or a whole container.
func nothingOrNew(t *testing.T, k *killing, when string) {
	t.Helper()
	box, header := filepath.Join(k.folder, "box"), filepath.Join(k.folder, k.headerFile())
	left := names(t, k.folder)
	want := "box"
	if k.detached {
		want = "box head"
	}
	switch {
	case left == "":
	case left == want:
		if !noneOrNew(t, box, header, when) {
			t.Errorf("%s: a file that is no container", when)
		}
	case k.detached && left == "box":
		// Noise, that looks like nothing.
		noneOrNew(t, box, box, when)
	default:
		t.Errorf("%s: it leaves %s", when, left)
	}
}

// noneOrNew checks that there is no header, or that the new passphrase opens it,
// which it reports, and all of the volume can be read.
func noneOrNew(t *testing.T, path, headerPath, when string) bool {
	t.Helper()
	open := func(path string) *volume.File {
		file, err := volume.OpenFile(path, true)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	at := volume.Attached(open(path))
	defer at.Data.(*volume.File).Close()
	if headerPath != path {
		at.Header = open(headerPath)
		defer at.Header.(*volume.File).Close()
	}
	_, err := volume.ReadHeader(at)
	var fault *volume.FormatError
	if errors.As(err, &fault) && fault.Field == "magic" {
		return false
	}
	if err != nil {
		t.Errorf("%s: %v", when, err)
		return false
	}
	key, err := volume.Unlock(context.Background(), at, []byte(newPassphrase), volume.AnySlot, nil)
	if err != nil {
		t.Errorf("%s: there is a header, but: %v", when, err)
		return false
	}
	defer key.Close()
	v, err := volume.Open(at, key, volume.Options{ReadOnly: true})
	if err != nil {
		t.Errorf("%s: %v", when, err)
		return false
	}
	defer v.Close()
	if _, err := v.ReadAt(make([]byte, v.Size()), 0); err != nil || v.Size() == 0 {
		t.Errorf("%s: a volume of %d bytes: %v", when, v.Size(), err)
	}
	return true
}
