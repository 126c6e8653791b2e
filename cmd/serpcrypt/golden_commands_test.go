package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"serpcrypt/internal/golden"
)

func TestCommandsOnGolden(t *testing.T) { commandsOnGolden(t, golden.Small(t)) }

func TestCommandsOnGoldenLUKS2(t *testing.T) { commandsOnGolden(t, golden.LUKS2(t)) }

func TestCommandsOnMoreGolden(t *testing.T) { commandsOnGolden(t, golden.Big(t)) }

func TestCommandsOnDetachedGolden(t *testing.T) { commandsOnGolden(t, golden.Detached(t)) }

// goldenBox is a container of another program, and what opens it, in files.
type goldenBox struct {
	*testing.T
	image     *golden.Image
	box       string
	flags     []string       // that name a detached header
	keys      map[int]string // key files, by key slot
	volumeKey string
}

func newGoldenBox(t *testing.T, image *golden.Image) *goldenBox {
	g := &goldenBox{T: t, image: image, box: unpack(t, image), keys: map[int]string{}}
	if image.PayloadOffset == 0 {
		g.flags = []string{"--header", g.write("header", image.UnpackHeader(t))}
	}
	for slot, passphrase := range image.Passphrases {
		g.keys[slot] = g.write(fmt.Sprintf("key%d", slot), passphrase)
	}
	g.volumeKey = g.write("volumekey", image.VolumeKey)
	return g
}

func (g *goldenBox) write(name string, content []byte) string {
	g.Helper()
	path := filepath.Join(g.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		g.Fatal(err)
	}
	return path
}

// run gives the command the container, and words behind that.
func (g *goldenBox) run(code int, command string, words ...string) outcome {
	g.Helper()
	args := append(strings.Fields(command), g.box)
	args = append(args, words...)
	return serpcrypt(g.T, "", append(args, g.flags...)...).must(g.T, code)
}

// newSlot runs a command that makes a key slot, and returns its number.
func (g *goldenBox) newSlot(command string, words ...string) int {
	g.Helper()
	var d newKeyDocument
	o := g.run(0, command+" -q --json --pbkdf pbkdf2 --pbkdf-force-iterations 1000", words...)
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil {
		g.Fatal(err)
	}
	return d.KeySlot
}

// isWhole checks that all keys open, and that the content is what it was.
func (g *goldenBox) isWhole(after string) {
	g.Helper()
	for slot, key := range g.keys {
		if o := g.run(0, "key test", "-d", key, "-S", fmt.Sprint(slot)); g.Failed() {
			g.Fatalf("after %s: key slot %d: %s", after, slot, o.stderr)
		}
	}
	checkPlaintext(g.T, g.image, g.run(0, "export", "-", "--volume-key-file", g.volumeKey).stdout)
	if g.Failed() {
		g.Fatalf("after %s", after)
	}
}

// commandsOnGolden has every command work on what other programs have made.
func commandsOnGolden(t *testing.T, images []*golden.Image) {
	for _, image := range images {
		t.Run(image.Name, func(t *testing.T) { newGoldenBox(t, image).runAll() })
	}
}

func (g *goldenBox) runAll() {
	isLUKS2 := strings.HasPrefix(g.image.Name, "l2-")
	first := -1
	for slot := range g.keys {
		if first < 0 || slot < first {
			first = slot
		}
	}
	g.run(0, "dump --json")
	g.run(0, "key list")
	g.run(0, "verify", "-d", g.keys[first])
	g.run(0, "repair")
	backup := filepath.Join(g.TempDir(), "backup")
	g.run(0, "header backup", backup)
	g.isWhole("looking at it")

	second, third := g.write("second", []byte("second")), g.write("third", []byte("third"))
	old := g.keys
	slot := g.newSlot("key add", "--volume-key-file", g.volumeKey, "--new-keyfile", second)
	slot = g.newSlot("key change", "-S", fmt.Sprint(slot), "-d", second, "--new-keyfile", third)
	g.keys = map[int]string{slot: third}
	for number, key := range old {
		g.keys[number] = key
	}
	g.run(exitPermission, "key test", "-d", second)
	g.isWhole("key add and change")
	g.run(0, "key remove -q", "-d", g.keys[first])
	g.run(exitPermission, "key test", "-d", g.keys[first])
	g.keys = old
	g.run(0, "header restore -q", backup)
	g.run(exitPermission, "key test", "-d", third)
	g.isWhole("key remove and header restore")

	g.run(0, "config", "--uuid", "")
	if isLUKS2 {
		g.run(0, "config", "--label", "golden")
	}
	g.convert(isLUKS2)
	g.isWhole("config and convert")

	size := sizeOf(g.T, g.box)
	g.run(0, "resize", fmt.Sprint(size+1<<20))
	g.run(0, "verify", "-d", g.keys[first])
	g.run(0, "resize -q --force", fmt.Sprint(size), "-d", g.keys[first])
	g.isWhole("resize")

	serpcrypt(g.T, "", append([]string{"import", third, g.box, "-d", g.keys[first]}, g.flags...)...).must(g.T, 0)
	if o := g.run(0, "export", "-", "-d", g.keys[first]); !strings.HasPrefix(o.stdout, "third") {
		g.Errorf("imported %q, exported %.5q", "third", o.stdout)
	}
	g.run(0, "erase -q")
	g.run(exitUsage, "key test", "-d", g.keys[first])
	g.newSlot("key add", "--volume-key-file", g.volumeKey, "--new-keyfile", second)
	g.run(0, "verify", "-d", second)
}

// convert goes there and back, or says why that is not possible.
func (g *goldenBox) convert(isLUKS2 bool) {
	if !isLUKS2 {
		g.run(0, "convert -q --type luks2")
		g.isWhole("convert to LUKS2")
		g.run(0, "convert -q --type luks1")
		return
	}
	o := g.run(exitBad, "convert -q --type luks1")
	if !strings.Contains(o.stderr, "this container cannot become LUKS1: ") {
		g.Error(o.stderr)
	}
}
