// Command _asm writes the generated files of package serpent: the S-boxes in
// Go, and the assembly kernels with their Go declarations.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

//go:embed sboxes.txt
var sboxesText string

func main() {
	// avo defines flags of its own on the default set.
	flags := flag.NewFlagSet("_asm", flag.ExitOnError)
	out := flags.String("out", "..", "folder of the package")
	pkg := flags.String("pkg", "serpent", "name of the package")
	_ = flags.Parse(os.Args[1:]) // exits on an error
	if err := run(*out, *pkg); err != nil {
		fmt.Fprintln(os.Stderr, "_asm:", err)
		os.Exit(1)
	}
}

func run(out, pkg string) error {
	files, err := generate(pkg)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the content of each generated file by its name.
func generate(pkg string) (map[string][]byte, error) {
	sboxes, err := ParseSboxes(sboxesText)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	if files["sboxes.go"], err = goSboxes(pkg, sboxes); err != nil {
		return nil, err
	}
	files["kernels_amd64.s"], files["kernels_amd64.go"], err = assembly(pkg, sboxes)
	return files, err
}

// assembly returns the kernels and their Go declarations.
func assembly(pkg string, s *Sboxes) (code, declarations []byte, err error) {
	c := build.NewContext()
	c.ConstraintExpr("!purego")
	for _, k := range sse2Kernels(s) {
		if err := k.Write(c); err != nil {
			return nil, nil, fmt.Errorf("%s of %d blocks, %s: %w", k.verb(), k.blocks(), k.Name, err)
		}
	}
	file, err := c.Result()
	if err != nil {
		return nil, nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, nil, err
	}
	cfg := printer.Config{Name: "_asm", Pkg: pkg}
	if code, err = printer.NewGoAsm(cfg).Print(file); err != nil {
		return nil, nil, err
	}
	declarations, err = printer.NewStubs(cfg).Print(file)
	return code, declarations, err
}
