// Package archtest holds the shape of the program: which package may import
// which.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "serpcrypt"

// layers lists the packages from the bottom to the top. A package imports only
// those of layers below its own.
var layers = [][]string{
	{"internal/secret", "internal/cpucycles", "internal/fsprobe", "internal/skip", "internal/guarded", "internal/faultstore",
		"internal/fusefs", "internal/loopdev", "internal/procs", "internal/newfile", "internal/load", "internal/whirlpool", "internal/child", "internal/archtest", "internal/asmtest", "docs"},
	{"cipher/serpent", "hash/sha1", "internal/mounts", "internal/golden", "internal/faultfs"},
	{"internal/hashes"},
	{"cipher/modes", "kdf"},
	{"volume/af"},
	{"volume/keyslot", "volume/luks"},
	{"volume/luks1", "volume/luks2"},
	{"volume"},
	{"internal/bench"},
	{"cmd/serpcrypt"},
}

// only names the packages that may import a package, the paths below it
// included, where that is not everyone above it.
var only = map[string][]string{
	"github.com/cpuguy83/go-md2man": {"cmd/serpcrypt"},
	"github.com/hanwen/go-fuse":     {"internal/fusefs", "internal/faultfs"},
	"github.com/klauspost/cpuid":    {"cipher/serpent", "hash/sha1", "internal/bench"},
	"github.com/moby/sys/mountinfo": {"internal/mounts", "kdf"},
	"github.com/urfave/cli":         {"cmd/serpcrypt"},
	"golang.org/x/crypto":           {"kdf", "internal/hashes"},
	"golang.org/x/term":             {"cmd/serpcrypt"},
	module + "/docs":                {"cmd/serpcrypt"},
	module + "/internal/fusefs":     {"internal/bench", "internal/faultfs", "cmd/serpcrypt"},
	module + "/internal/loopdev":    {"internal/bench", "cmd/serpcrypt"},
	// for tests
	"testing":                         {"internal/skip", "internal/guarded", "internal/golden", "internal/faultfs", "internal/child"},
	module + "/internal/skip":         {"internal/golden"},
	module + "/internal/guarded":      {},
	module + "/internal/faultstore":   {},
	module + "/internal/faultfs":      {},
	module + "/internal/child":        {},
	module + "/internal/golden":       {},
	module + "/internal/archtest":     {},
	module + "/internal/asmtest":      {},
	"github.com/rogpeppe/go-internal": {},
	"github.com/creack/pty":           {},
	"github.com/ulikunitz/xz":         {"internal/golden"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

// list returns the packages of the module for an architecture and build tags.
func list(t *testing.T, arch, tags string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "-tags="+tags, module+"/...")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v", arch, err)
	}
	var packages []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func TestImportsGoOneWay(t *testing.T) {
	layerOf := map[string]int{}
	for i, layer := range layers {
		for _, p := range layer {
			layerOf[path.Join(module, p)] = i
		}
	}
	for _, build := range []struct{ name, arch, tags string }{
		{"amd64", "amd64", ""}, {"purego", "amd64", "purego"}, {"arm64", "arm64", ""}, {"386", "386", ""},
	} {
		t.Run(build.name, func(t *testing.T) {
			found := map[string]bool{}
			for _, p := range list(t, build.arch, build.tags) {
				found[p.ImportPath] = true
				layer, ok := layerOf[p.ImportPath]
				if !ok {
					t.Errorf("%s is in no layer", p.ImportPath)
					continue
				}
				for _, imported := range p.Imports {
					if below, ours := layerOf[imported]; ours && below >= layer {
						t.Errorf("%s imports %s, which is not below it", p.ImportPath, imported)
					}
					if !mayImport(p.ImportPath, imported) {
						t.Errorf("%s may not import %s", p.ImportPath, imported)
					}
				}
			}
			for p := range layerOf {
				if !found[p] {
					t.Errorf("%s is in a layer and does not exist", p)
				}
			}
		})
	}
}

func mayImport(importer, imported string) bool {
	for p, importers := range only {
		if imported == p || strings.HasPrefix(imported, p+"/") {
			return slices.Contains(importers, strings.TrimPrefix(importer, module+"/"))
		}
	}
	return true
}
