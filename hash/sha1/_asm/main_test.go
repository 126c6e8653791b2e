package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGeneratedFiles compares what the package has with what is generated now.
func TestGeneratedFiles(t *testing.T) {
	contents, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if len(contents) < 2 {
		t.Errorf("only %d files", len(contents))
	}
	for name, want := range contents {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what is generated now: run go generate in hash/sha1", name)
		}
	}
}
