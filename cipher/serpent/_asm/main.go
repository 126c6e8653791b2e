// Command _asm writes the generated files of package serpent: the S-boxes in
// Go, and the assembly kernels with their Go declarations.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

//go:embed sboxes.txt
var sboxesText string

//go:embed sboxes3.txt
var sboxes3Text string

const packageName = "serpent"

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "_asm:", err)
		os.Exit(1)
	}
}

// write writes the files into the folder of the package, in which _asm lies.
func write() error {
	files, err := generate()
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join("..", name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the content of each generated file by its name.
func generate() (map[string][]byte, error) {
	two, err := ParseSboxes(sboxesText)
	if err != nil {
		return nil, fmt.Errorf("sboxes.txt: %w", err)
	}
	three, err := ParseSboxes(sboxes3Text)
	if err != nil {
		return nil, fmt.Errorf("sboxes3.txt: %w", err)
	}
	files := make(map[string][]byte)
	if files["sboxes.go"], err = goSboxes(two); err != nil {
		return nil, err
	}
	for name, write := range map[string]func(c *build.Context) error{
		"kernels_sse2_amd64": func(c *build.Context) error {
			writeGather(c, "SSE2", 1, moveBlocks(c))
			return writeKernels(c, sse2Kernels(two))
		},
		"kernels_avx2_amd64": func(c *build.Context) error {
			writeTweaks(c, &avx2)
			writeCounters(c, &avx2)
			return writeKernels(c, avx2Kernels(two))
		},
		"kernels_avx512_amd64": func(c *build.Context) error {
			wide := avx512(16)
			writeTweaks(c, &wide)
			writeCounters(c, &wide)
			writeGather(c, wide.Name, lineBlocks, transposeBlocks(c))
			return writeKernels(c, avx512Kernels(three))
		},
	} {
		if files[name+".s"], files[name+".go"], err = assembly(write); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

func writeKernels(c *build.Context, kernels []Kernel) error {
	for _, k := range kernels {
		if err := k.Write(c); err != nil {
			return err
		}
	}
	return nil
}

// assembly returns what write adds to a file, and its Go declarations.
func assembly(write func(c *build.Context) error) (code, declarations []byte, err error) {
	c := build.NewContext()
	c.ConstraintExpr("!purego")
	if err := write(c); err != nil {
		return nil, nil, err
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
