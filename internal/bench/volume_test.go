package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/cpucycles"
	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/skip"
)

// smallVolumes makes the files small and the rounds few until the test ends,
// and skips it where none can be mounted.
func smallVolumes(t *testing.T) Options {
	t.Helper()
	if err := errors.Join(fusefs.Available(), unix.Access("/dev/fuse", unix.R_OK|unix.W_OK)); err != nil {
		skip.Skip(t, "nothing can be mounted: "+err.Error())
	}
	size, rounds := volumeBytes, volumeRounds
	t.Cleanup(func() { volumeBytes, volumeRounds = size, rounds })
	volumeBytes, volumeRounds = 16<<20, 1
	return Options{Suites: []string{"volume"}, Load: testLoad, Each: atOnce}
}

// nothingToSee reports as errors what has a name in the folder for temporary
// files, mounts included.
func nothingToSee(t *testing.T) {
	t.Helper()
	dir := os.Getenv("TMPDIR")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("in the folder for temporary files are %v: %v", entries, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("something is mounted at %s: %v", dir, err)
	}
}

func TestVolumeSuite(t *testing.T) {
	o := smallVolumes(t)
	t.Setenv("TMPDIR", t.TempDir())
	o.Progress = func(int, int) { nothingToSee(t) } // so that a killed process leaves nothing
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	nothingToSee(t)
	rows := map[string]int{}
	for _, x := range r.Volume {
		rows[fmt.Sprint(x.Path, x.Kernel, x.Op, x.Pattern, x.Bytes, x.Depth)]++
		known := x.AddedCyclesPerByte != nil
		if x.Suite != "volume" || x.Storage != "tmpfs" && x.Storage != "disk" || x.BytesPerSecond <= 0 || x.RatioToNull <= 0 {
			t.Errorf("%+v", x)
		}
		if x.Kernel == "null" && x.RatioToNull != 1 {
			t.Errorf("the ratio of null to itself is %v", x.RatioToNull)
		}
		if want := cpucycles.Known && x.Kernel != "null" && x.Kernel != "none"; known != want {
			t.Errorf("%s, %s: cycles are known: %v, want %v", x.Path, x.Kernel, known, want)
		}
	}
	want := 0
	paths := map[string][]string{"file": {"none"}, "fuse": {"null"}}
	for _, k := range serpent.Kernels() {
		paths["fuse"] = append(paths["fuse"], k.String())
	}
	if os.Geteuid() == 0 && haveExt4() {
		paths["ext4"] = paths["fuse"]
	}
	for path, kernels := range paths {
		for _, kernel := range kernels {
			for _, op := range []string{"read", "write"} {
				for _, pattern := range []string{"sequential", "random"} {
					for size, depths := range map[int][]int{4 << 10: {1, 8, 32}, 64 << 10: {1, 8, 32}, 1 << 20: {1, 8}} {
						for _, depth := range depths {
							want++
							if row := fmt.Sprint(path, kernel, op, pattern, size, depth); rows[row] != 1 {
								t.Errorf("%s is there %d times", row, rows[row])
							}
						}
					}
				}
			}
		}
	}
	if len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	var tables strings.Builder
	if err := r.WriteTables(&tables, Layout{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(tables.String()) {
		if len(strings.TrimRight(line, "\n")) > 100 {
			t.Errorf("a long line: %s", line)
		}
	}
}

// Whenever it ends, it leaves nothing behind.
func TestVolumeStopsWithContext(t *testing.T) {
	o := smallVolumes(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	o.Kernel = serpent.Generic
	o.Progress = func(done, _ int) {
		if done == 40 { // with root, file systems are mounted by now
			cancel()
		}
	}
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) && (err != nil || os.Geteuid() == 0 && haveExt4()) {
		t.Errorf("error is %v", err)
	}
	nothingToSee(t)
}

// A load that cannot be started, or ends, ends the measuring.
func TestVolumeWithoutLoad(t *testing.T) {
	o := smallVolumes(t)
	o.Load = nil
	if _, err := Run(context.Background(), o); err == nil {
		t.Error("no load, and no error")
	}
}

func TestVolumeTables(t *testing.T) {
	added := 1.234
	got := ""
	for _, table := range volumeTables([]VolumeResult{
		{"volume", "tmpfs", "fuse", "null", "read", "random", 4096, 1, 4e8, 1, nil},
		{"volume", "tmpfs", "file", "none", "read", "random", 4096, 1, 8e8, 2, nil},
		{"volume", "tmpfs", "fuse", "avx2", "read", "random", 4096, 1, 2e8, 0.5, &added},
		{"volume", "tmpfs", "ext4", "null", "write", "random", 1 << 20, 8, 1e9, 1, nil},
	}) {
		got += (Layout{}).render(table) + "\n"
	}
	const want = `volume on tmpfs, fuse, random, MB/s (10^6 bytes)

request       null    file    avx2
read 4096B x1 400     800     200

volume on tmpfs, fuse, random, speed ratios to null

request       null    file    avx2
read 4096B x1 1.00x   2.00x   0.50x

volume on tmpfs, fuse, random, core cycles per byte more than null

request       null    file    avx2
read 4096B x1                 1.23

volume on tmpfs, ext4, random, MB/s (10^6 bytes)

request     null
write 1M x8 1000

volume on tmpfs, ext4, random, speed ratios to null

request     null
write 1M x8 1.00x

volume on tmpfs, ext4, random, core cycles per byte more than null

request     null
write 1M x8

`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
