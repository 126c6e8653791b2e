// Command _asm writes the assembly kernels of package sha1 with their Go
// declarations.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// files maps the name of each file of assembly for amd64, and of the Go file
// beside it, to the functions that are in it.
var files = map[string][]func(c *build.Context){
	"stream_amd64":      {writeSHANI, writeScalar, writeAVX2},
	"chains_sse2_amd64": vectorChains(vectorKernel{newSSE2, 1, 8}, vectorKernel{newSSE2, 2, 1}),
	"chains_avx2_amd64": vectorChains(vectorKernel{newAVX2, 1, 8}, vectorKernel{newAVX2, 2, 1}),
	"chains_avx512_amd64": append(vectorChains(
		vectorKernel{newAVX512VL, 1, 16}, vectorKernel{newAVX512, 1, 16}, vectorKernel{newAVX512, 2, 8}),
		writePairsData, writePairedChains),
	"chains_shani_amd64": {
		writeSHANIChainsData,
		writeSHANIChains(1), writeSHANIChains(2), writeSHANIChains(3), writeSHANIChains(4),
	},
}

const packageName = "sha1"

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "_asm:", err)
		os.Exit(1)
	}
}

// write writes the files into the folder of the package, in which _asm lies.
func write() error {
	contents, err := generate()
	if err != nil {
		return err
	}
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join("..", name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the content of each generated file by its name.
func generate() (map[string][]byte, error) {
	contents := make(map[string][]byte)
	for name, functions := range files {
		var err error
		if contents[name+".s"], contents[name+".go"], err = assembly(functions); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	contents["stream_386.s"], contents["stream_386.go"] = scalar386()
	return contents, nil
}

// assembly returns the functions, and their Go declarations.
func assembly(functions []func(c *build.Context)) (code, declarations []byte, err error) {
	c := build.NewContext()
	c.ConstraintExpr("!purego")
	for _, write := range functions {
		write(c)
	}
	file, err := c.Result()
	if err != nil {
		return nil, nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, nil, err
	}
	cfg := printer.Config{Name: "_asm", Pkg: packageName}
	if code, err = printer.NewGoAsm(cfg).Print(file); err != nil {
		return nil, nil, err
	}
	declarations, err = printer.NewStubs(cfg).Print(file)
	return code, declarations, err
}
