// Command _asm writes the generated files of package serpent: the S-boxes in
// Go, and the assembly kernels with their Go declarations.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed sboxes.txt
var sboxesText string

func main() {
	out := flag.String("out", "..", "folder of the package")
	pkg := flag.String("pkg", "serpent", "name of the package")
	flag.Parse()
	if err := run(*out, *pkg); err != nil {
		fmt.Fprintln(os.Stderr, "_asm:", err)
		os.Exit(1)
	}
}

func run(out, pkg string) error {
	sboxes, err := ParseSboxes(sboxesText)
	if err != nil {
		return err
	}
	code, err := goSboxes(pkg, sboxes)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "sboxes.go"), code, 0o644)
}
