package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"serpcrypt/internal/cpucycles"
	"serpcrypt/internal/skip"
)

// All ways lead to encrypted files, and to different ones where they should, and
// nothing is left of them in the end.
func TestMounts(t *testing.T) {
	if err := mountsMissing(); err != nil {
		skip.Skip(t, "nothing can be mounted: "+err.Error())
	}
	const size = 4 << 20
	m, ways, err := openMounts(context.Background(), size)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range ways {
		_, name, _ := strings.Cut(w.name, ", ")
		names = append(names, name)
		if info, err := os.Stat(w.file); err != nil || info.Size() < size {
			t.Errorf("%s: %v, %v", w.name, info, err)
		}
	}
	want := []string{"--raw", "", "O_DIRECT"}
	if os.Geteuid() == 0 {
		want = []string{"--raw", "ext4", "ext4, O_DIRECT", "", "O_DIRECT"}
	}
	if !slices.Equal(names, want) {
		t.Errorf("ways are %q, want %q", names, want)
	}
	if err := m.closeAll(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(m.folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", m.folder, err)
	}
}

func TestFileThatForgetsIsFound(t *testing.T) {
	if err := (way{name: "w", file: filepath.Join(t.TempDir(), "file")}).check(4 << 20); err != nil {
		t.Error(err)
	}
	err := way{name: "w", file: "/dev/zero"}.check(4 << 20)
	if err == nil {
		t.Error("a file of zeros has kept other bytes")
	}
}

func TestBesideTheirs(t *testing.T) {
	results := []result{
		{"serpcrypt, ext4", "read", 1, cpucycles.Cost{Nanoseconds: 100}},
		{"serpcrypt, ext4", "write", 1, cpucycles.Cost{Nanoseconds: 400}},
		{"gocryptfs", "read", 1, cpucycles.Cost{Nanoseconds: 350}},
		{"gocryptfs, O_DIRECT", "read", 1, cpucycles.Cost{Nanoseconds: 300}},
		{"gocryptfs", "write", 1, cpucycles.Cost{Nanoseconds: 200}},
		{"gocryptfs, O_DIRECT", "write", 1, cpucycles.Cost{Nanoseconds: 800}},
	}
	var out strings.Builder
	writeVolumes(&out, results, "tmpfs")
	_, ratios, _ := strings.Cut(out.String(), "faster way:\n")
	const want = `
                     read    write
    serpcrypt, ext4  3.00x   0.50x
`
	if ratios != want {
		t.Errorf("got\n%s\nwant\n%s", ratios, want)
	}
}
