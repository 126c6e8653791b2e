package luks2

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/golden"
	"serpcrypt/internal/skip"
)

// cryptsetup runs the program and returns what it prints, errors included.
func cryptsetup(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("cryptsetup")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/cryptsetup"); err != nil {
			skip.Skip(t, "cryptsetup is not installed")
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestCryptsetupReadsOurHeaders: it takes each copy without a word of complaint, says
// the same of the binary header, and prints the same metadata.
func TestCryptsetupReadsOurHeaders(t *testing.T) {
	headers := map[string]*Header{}
	for _, image := range golden.LUKS2(t) {
		headers[image.Name] = read(t, image.Unpack(t)).Header
	}
	example := func() *Header {
		h, _ := exampleHeader(t)
		// It writes numbers in its own way.
		h.Unknown = []Member{{"x", []byte(`{"a":[1,true,null,"\u00e9\/"]}`)}}
		h.Tokens[7].Unknown = nil
		return h
	}
	headers["example"] = example()
	detached := example()
	detached.Segments[0].Offset = 0
	headers["detached"] = detached
	full := example()
	ignored := PriorityIgnore
	full.Keyslots[0].Priority = &ignored
	full.Config.Flags = []string{"allow-discards"}
	full.Config.Requirements.Mandatory = []string{}
	full.Config.Flags = append(full.Config.Flags, strings.Repeat("f", int(full.Size)-HeaderSize-1-len(writeJSON(&full.Metadata))-len(`,""`)))
	headers["full"] = full
	for size := int64(MinSize); size <= MaxSize; size *= 2 {
		h := example()
		fresh := newOfSize(t, size)
		fresh.Label = "größer"
		fresh.Keyslots, fresh.Digests = h.Keyslots, h.Digests
		fresh.Keyslots[0].Area.Offset = 2 * size
		headers[fmt.Sprint("size ", size)] = fresh
	}
	for name, h := range headers {
		t.Run(name, func(t *testing.T) {
			size := max(h.Segments[0].Offset, 4<<20) + 1<<20
			b := make([]byte, size)
			s := faultstore.New(b)
			if err := h.Save(s); err != nil {
				t.Fatal(err)
			}
			for _, spoiled := range []int64{-1, 0, h.Size} {
				b := s.Bytes()
				if spoiled >= 0 {
					clear(b[spoiled : spoiled+HeaderSize])
				}
				path := filepath.Join(t.TempDir(), "container")
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				metadata, err := cryptsetup(t, "luksDump", "--dump-json-metadata", path)
				if err != nil || metadata[0] != '{' {
					t.Fatalf("copy at %d spoiled: %v: %s", spoiled, err, metadata)
				}
				sameJSON(t, []byte(metadata), writeJSON(&h.Metadata))
				dump, err := cryptsetup(t, "luksDump", path)
				if err != nil {
					t.Fatalf("copy at %d spoiled: %v: %s", spoiled, err, dump)
				}
				for field, want := range map[string]string{
					"Epoch":         fmt.Sprint(h.SeqID),
					"Metadata area": fmt.Sprintf("%d [bytes]", h.Size),
					"Keyslots area": fmt.Sprintf("%d [bytes]", h.Config.KeyslotsSize),
					"UUID":          h.UUID,
					"Label":         orNone(h.Label, "(no label)"),
					"Subsystem":     orNone(h.Subsystem, "(no subsystem)"),
				} {
					_, rest, _ := strings.Cut(dump, "\n"+field+":")
					got, _, _ := strings.Cut(rest, "\n")
					if strings.TrimSpace(got) != want {
						t.Errorf("%s: it says %q, want %q", field, got, want)
					}
				}
				// The good copy is what it mends the other from.
				after, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if found := read(t, after); found.Copies[0].Fault != nil || found.Copies[1].Fault != nil || found.Header.SeqID != h.SeqID {
					t.Errorf("copy at %d spoiled: it leaves %+v", spoiled, found)
				}
				if spoiled < 0 && !bytes.Equal(after, b) {
					t.Error("it has mended something")
				}
			}
		})
	}
}

func orNone(text, none string) string {
	if text == "" {
		return none
	}
	return text
}
