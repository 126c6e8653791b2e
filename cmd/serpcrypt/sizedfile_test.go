package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "box")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f := sizedFile{file, path}
	if err := f.reserve(1 << 20); err != nil {
		t.Fatal(err)
	}
	if info, _ := f.Stat(); info.Size() != 1<<20 {
		t.Errorf("size %d after reserving 1 MiB", info.Size())
	}
	err = f.reserve(1 << 60)
	if code, _ := explain(err); code != exitBad || !strings.Contains(err.Error(), "are free") {
		t.Errorf("reserving 1 EiB: error %v, code %d", err, code)
	}
}
