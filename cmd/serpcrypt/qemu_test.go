package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"serpcrypt/internal/skip"
)

// qemu is QEMU's own LUKS1, in user space.
type qemu struct {
	passphrase string // path of a file with it
}

func newQemu(t *testing.T) *qemu {
	t.Helper()
	if _, err := exec.LookPath("qemu-img"); err != nil {
		skip.Skip(t, "qemu-img is not installed")
	}
	path := filepath.Join(t.TempDir(), "passphrase")
	if err := os.WriteFile(path, []byte(testPassphrase), 0o600); err != nil {
		t.Fatal(err)
	}
	return &qemu{path}
}

func (q *qemu) run(t *testing.T, command string, args ...string) outcome {
	args = append([]string{command, "--object", "secret,id=key,file=" + qemuValue(q.passphrase)}, args...)
	return runCommand(t, exec.Command("qemu-img", args...))
}

func (q *qemu) create(t *testing.T, path, options string, size int) {
	t.Helper()
	const tries = 20
	for range tries {
		o := q.run(t, "create", "-q", "-f", "luks", "-o", "key-secret=key,iter-time=10,"+options, path, fmt.Sprint(size))
		// Its calibration fails now and then on a busy machine.
		if !strings.Contains(o.stderr, "Unable to get accurate CPU usage") {
			o.must(t, 0)
			return
		}
	}
	t.Fatalf("qemu-img create has failed %d times", tries)
}

// qemuValue writes a value as qemu-img reads it: with commas doubled.
func qemuValue(s string) string { return strings.ReplaceAll(s, ",", ",,") }

func luksImage(path string) string {
	return "driver=luks,key-secret=key,file.driver=file,file.filename=" + qemuValue(path)
}

func (q *qemu) read(t *testing.T, container, plain string) {
	t.Helper()
	q.run(t, "convert", "--image-opts", luksImage(container), "-O", "raw", plain).must(t, 0)
}

func (q *qemu) write(t *testing.T, plain, container string) {
	t.Helper()
	q.run(t, "convert", "-n", "-f", "raw", plain, "--target-image-opts", luksImage(container)).must(t, 0)
}

// TestQemu: each of the two reads what the other has made and written.
func TestQemu(t *testing.T) {
	q := newQemu(t)
	const xts, essiv = "serpent-xts-plain64", "serpent-cbc-essiv:sha256"
	for _, test := range []struct {
		cipher   string
		keyBits  int // qemu-img aborts on cbc with 192
		hashes   []string
		qemu     string // its options for the same cipher
		qemuHash string // one each, since its calibration takes seconds
	}{
		{xts, 256, []string{"sha1", "sha256"}, "cipher-alg=serpent-128,cipher-mode=xts,ivgen-alg=plain64", "sha256"},
		{xts, 384, []string{"sha1", "sha256"}, "cipher-alg=serpent-192,cipher-mode=xts,ivgen-alg=plain64", "sha1"},
		{xts, 512, []string{"sha1", "sha256", "sha512"}, "cipher-alg=serpent-256,cipher-mode=xts,ivgen-alg=plain64", "sha256"},
		{essiv, 128, []string{"sha1", "sha256"}, "cipher-alg=serpent-128,cipher-mode=cbc,ivgen-alg=essiv,ivgen-hash-alg=sha256", "sha1"},
		{essiv, 256, []string{"sha1", "sha256"}, "cipher-alg=serpent-256,cipher-mode=cbc,ivgen-alg=essiv,ivgen-hash-alg=sha256", "sha256"},
	} {
		for _, hash := range test.hashes {
			t.Run(fmt.Sprintf("ours,%s,%d,%s", test.cipher, test.keyBits, hash), func(t *testing.T) {
				t.Parallel()
				box := newBox(t, "--type", "luks1", "-c", test.cipher, "-s", fmt.Sprint(test.keyBits), "--hash", hash, "--size", fmt.Sprint(payloadOffset(test.keyBits)+1<<20))
				q.exchange(t, box)
			})
		}
		t.Run(fmt.Sprintf("theirs,%s,%d,%s", test.cipher, test.keyBits, test.qemuHash), func(t *testing.T) {
			t.Parallel()
			box := filepath.Join(t.TempDir(), "box")
			q.create(t, box, test.qemu+",hash-alg="+test.qemuHash, 1<<20)
			dump := serpcrypt(t, "", "dump", "--json", box).must(t, 0).stdout
			cipher, mode, _ := strings.Cut(test.cipher, "-")
			for _, want := range []string{`"cipher": "` + cipher + `"`, `"mode": "` + mode + `"`, fmt.Sprintf(`"key_bits": %d`, test.keyBits), `"hash": "` + test.qemuHash + `"`} {
				if !strings.Contains(dump, want) {
					t.Errorf("not the container that was to be made: no %s in\n%s", want, dump)
				}
			}
			q.exchange(t, box)
		})
	}
}

// exchange has each of the two read what the other writes into a container
// with a payload of 1 MiB.
func (q *qemu) exchange(t *testing.T, box string) {
	t.Helper()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	first, second := randomFile(t, path("first"), 1<<20), randomFile(t, path("second"), 1<<20)

	q.read(t, box, path("as made"))
	if serpcrypt(t, testPassphrase, "export", box, "-").must(t, 0).stdout != content(t, path("as made")) {
		t.Error("we read something else than qemu-img in a new container")
	}
	serpcrypt(t, testPassphrase, "import", path("first"), box).must(t, 0)
	q.read(t, box, path("read"))
	if content(t, path("read")) != first {
		t.Error("qemu-img does not read what we have written")
	}
	q.write(t, path("second"), box)
	if serpcrypt(t, testPassphrase, "export", box, "-").must(t, 0).stdout != second {
		t.Error("we do not read what qemu-img has written")
	}
	serpcrypt(t, testPassphrase, "verify", box).must(t, 0)
}

// payloadOffset is where our payload begins: at the first MiB behind the slots.
func payloadOffset(keyBits int) int {
	if keyBits <= 192 {
		return 1 << 20
	}
	return 2 << 20
}

// randomFile makes a file, and returns what is in it.
func randomFile(t *testing.T, path string, size int) string {
	t.Helper()
	var seed [32]byte
	copy(seed[:], path)
	data := make([]byte, size)
	rand.NewChaCha8(seed).Read(data)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return string(data)
}
