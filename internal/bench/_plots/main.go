// Command plots draws the plots of docs/bench.md from figures of
// serpcrypt bench --json.
//
//	go run . FOLDER [RUN.json ...]
//
// Runs, if there are any, become FOLDER/figures.json: the median of each figure.
// The plots are drawn from that file.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("usage: plots FOLDER [RUN.json ...]")
	}
	folder, runs := arguments[0], arguments[1:]
	path := filepath.Join(folder, figuresName)
	if len(runs) > 0 {
		f, err := merge(runs)
		if err != nil {
			return err
		}
		if err := f.complete(); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.marshal(), 0o644); err != nil {
			return err
		}
	}
	f, err := readFigures(path)
	if err != nil {
		return err
	}
	if err := f.complete(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range plots {
		svg, err := p.draw(f)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, p.name), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}
