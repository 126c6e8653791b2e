// Package golden gives tests the LUKS containers that cryptsetup and qemu-img
// have made: see testdata/golden/README.
package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"serpcrypt/internal/skip"
)

// FolderEnv names the folder of the images that are too big for testdata.
const FolderEnv = "SERPCRYPT_GOLDEN"

// Image is a container and what is known of it.
type Image struct {
	Name            string
	Passphrases     map[int][]byte // by key slot
	KeyFile         string         // path, "" if there is none
	VolumeKey       []byte
	PayloadOffset   int64
	PayloadSize     int64
	SectorSize      int // bytes, of the payload's encryption
	PlaintextSHA256 string

	packed, packedHeader string // paths
	sha256, headerSHA256 string
}

// Small returns the LUKS1 images of testdata.
func Small(t testing.TB) []*Image {
	t.Helper()
	return atLeast(t, 7, load(t, testdata(t), isLUKS1))
}

// LUKS2 returns the LUKS2 images of testdata.
func LUKS2(t testing.TB) []*Image {
	t.Helper()
	return atLeast(t, 3, load(t, testdata(t), isLUKS2))
}

func atLeast(t testing.TB, n int, images []*Image) []*Image {
	t.Helper()
	if len(images) < n {
		t.Fatalf("golden: only %d images in testdata", len(images))
	}
	return images
}

// Named returns the image of testdata whose name begins with prefix.
func Named(t testing.TB, prefix string) *Image {
	t.Helper()
	for _, image := range append(Small(t), LUKS2(t)...) {
		if strings.HasPrefix(image.Name, prefix) {
			return image
		}
	}
	t.Fatalf("golden: no image is called %s...", prefix)
	return nil
}

// Big returns the other LUKS1 images, those that FolderEnv's folder has on top of
// testdata, or skips the test if it is not set.
func Big(t testing.TB) []*Image {
	t.Helper()
	return loadBig(t, isLUKS1)
}

// Detached returns the images of FolderEnv's folder whose header is in a file of
// its own, or skips the test if it is not set.
func Detached(t testing.TB) []*Image {
	t.Helper()
	return loadBig(t, isDetached)
}

func loadBig(t testing.TB, wanted func(name string) bool) []*Image {
	t.Helper()
	folder := os.Getenv(FolderEnv)
	if folder == "" {
		skip.Skip(t, FolderEnv+" does not name the folder of the bigger images")
	}
	var big []*Image
	for _, image := range load(t, folder, wanted) {
		if _, err := os.Stat(filepath.Join(testdata(t), image.Name+".txt")); err != nil {
			big = append(big, image)
		}
	}
	if len(big) == 0 {
		t.Fatalf("golden: no bigger images in %s", folder)
	}
	return big
}

// testdata finds the folder from wherever in the module the test runs.
func testdata(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return filepath.Join(folder, "testdata", "golden")
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("golden: the test does not run inside the module")
		}
		folder = filepath.Dir(folder)
	}
}

func isLUKS1(name string) bool {
	return (strings.HasPrefix(name, "l1-") || strings.HasPrefix(name, "q-")) && !isDetached(name)
}

func isDetached(name string) bool { return strings.HasPrefix(name, "l1-detached") }

func isLUKS2(name string) bool { return strings.HasPrefix(name, "l2-") }

// load reads what is said of the images in folder whose names are wanted.
func load(t testing.TB, folder string, wanted func(name string) bool) []*Image {
	t.Helper()
	texts, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var images []*Image
	for _, text := range texts {
		if wanted(strings.TrimSuffix(filepath.Base(text), ".txt")) {
			images = append(images, parse(t, text))
		}
	}
	return images
}

func parse(t testing.TB, path string) *Image {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(path, ".txt")
	image := &Image{Name: filepath.Base(base), Passphrases: map[int][]byte{}, packed: base + ".img.xz", packedHeader: base + "-header.img.xz"}
	head, _, _ := strings.Cut(string(text), "\n\n")
	number := func(value string) int64 {
		n, err := strconv.ParseInt(strings.TrimSuffix(value, " bytes"), 10, 64)
		if err != nil {
			t.Fatalf("golden: %s: %v", path, err)
		}
		return n
	}
	bytes := func(value string) []byte {
		b, err := hex.DecodeString(value)
		if err != nil {
			t.Fatalf("golden: %s: %v", path, err)
		}
		return b
	}
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "keyfile":
			image.KeyFile = base + ".key"
		case "volume-key":
			image.VolumeKey = bytes(value)
		case "payload-offset":
			image.PayloadOffset = number(value)
		case "payload-size":
			image.PayloadSize = number(value)
		case "sector-size":
			image.SectorSize = int(number(value))
		case "plaintext-sha256":
			image.PlaintextSHA256 = value
		case "image-sha256":
			image.sha256 = value
		case "header-sha256":
			image.headerSHA256 = value
		default:
			slot, isPassphrase := strings.CutPrefix(key, "passphrase-")
			if slot, isHex := strings.CutSuffix(slot, "-hex"); isPassphrase && isHex {
				image.Passphrases[int(number(slot))] = bytes(value)
			}
		}
	}
	if len(image.Passphrases) == 0 || image.PlaintextSHA256 == "" || image.PayloadSize == 0 {
		t.Fatalf("golden: %s says too little", path)
	}
	return image
}

// Unpack returns the container, or its payload if the header is detached.
func (i *Image) Unpack(t testing.TB) []byte {
	t.Helper()
	return unpack(t, i.packed, i.sha256)
}

// UnpackHeader returns the detached header.
func (i *Image) UnpackHeader(t testing.TB) []byte {
	t.Helper()
	return unpack(t, i.packedHeader, i.headerSHA256)
}

func unpack(t testing.TB, path, want string) []byte {
	t.Helper()
	content := Unxz(t, path)
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
		t.Fatalf("golden: %s: unpacked its SHA-256 is %x, want %s", path, sum, want)
	}
	return content
}

// Head returns the first n bytes of the container, or all if it has fewer. It
// does not take as long as Unpack, and checks nothing.
func (i *Image) Head(t testing.TB, n int64) []byte {
	t.Helper()
	return unxz(t, i.packed, n)
}

// Unxz returns what is packed in the .xz file at path.
func Unxz(t testing.TB, path string) []byte {
	t.Helper()
	return unxz(t, path, math.MaxInt64)
}

func unxz(t testing.TB, path string, limit int64) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := xz.NewReader(f)
	if err != nil {
		t.Fatalf("golden: %s: %v", path, err)
	}
	content, err := io.ReadAll(io.LimitReader(r, limit))
	if err != nil {
		t.Fatalf("golden: %s: %v", path, err)
	}
	return content
}
