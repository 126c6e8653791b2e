package main

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
)

// plots are the files of docs/bench.
var plots = []struct {
	name string
	draw func(*figures) ([]byte, error)
}{
	{"kernels.svg", drawKernels},
	{"requests.svg", drawRequests},
	{"sha1.svg", drawSHA1},
	{"volume.svg", drawVolume},
}

// drawKernels shows what a byte of a run of sectors costs.
func drawKernels(f *figures) ([]byte, error) {
	kernels := f.kernels(func(t task) bool { return t.Suite == "sectors" })
	columns := []struct{ name, mode, op string }{
		{"ECB", "ecb", "enc"}, {"CTR", "ctr", "enc"}, {"LRW", "lrw", "enc"},
		{"XTS, enc.", "xts", "enc"}, {"XTS, dec.", "xts", "dec"}, {"CBC, enc.", "cbc", "enc"}, {"CBC, dec.", "cbc", "dec"},
	}
	var groups []string
	for _, c := range columns {
		groups = append(groups, c.name)
	}
	p := newPlot("Serpent on one core: runs of 64 KiB in sectors of 512 bytes", "", "core cycles per byte (less is faster)")
	err := addBars(p, 16, groups, kernels, func(g int, kernel string) (float64, error) {
		v, err := f.find(task{Suite: "sectors", Kernel: kernel, Mode: columns[g].mode, Op: columns[g].op,
			SectorSize: 512, Bytes: 64 << 10, Threads: 1})
		return v.CyclesPerByte, err
	})
	if err != nil {
		return nil, err
	}
	p.Legend.XOffs = 500
	return sheet(f, 640, 300, []*plot.Plot{p})
}

// drawRequests shows how the speed grows with the request.
func drawRequests(f *figures) ([]byte, error) {
	kernels := f.kernels(func(t task) bool { return t.Suite == "serpent" })
	var panels []*plot.Plot
	for _, c := range []struct{ title, mode, op string }{{"Serpent-XTS, decryption", "xts", "dec"}, {"Serpent-CBC, encryption", "cbc", "enc"}} {
		p := newPlot(c.title, "bytes of a request", "MB/s on one core (10^6 bytes)")
		err := addLines(p, []int{16, 64, 256, 1024, 8192}, kernels, func(bytes int, kernel string) (float64, error) {
			v, err := f.find(task{Suite: "serpent", Kernel: kernel, Mode: c.mode, Op: c.op, Bytes: bytes})
			return v.BytesPerSecond / 1e6, err
		})
		if err != nil {
			return nil, err
		}
		panels = append(panels, p)
	}
	sameScale(panels)
	return sheet(f, 640, 300, panels)
}

// drawSHA1 shows the hash, and the key derivation with it.
func drawSHA1(f *figures) ([]byte, error) {
	hashers := f.kernels(func(t task) bool { return t.Suite == "sha1" })
	derivers := f.kernels(func(t task) bool { return t.Suite == "kdf" && t.Hash == "sha1" })
	messages, keys := []int{64, 8192}, []int{20, 32, 64}
	hash := newPlot("SHA-1 by length of the message", "", "core cycles per byte (less is faster)")
	err := addBars(hash, 17, inBytes(messages), hashers, func(g int, kernel string) (float64, error) {
		v, err := f.find(task{Suite: "sha1", Kernel: kernel, Bytes: messages[g], UpdateBytes: messages[g]})
		return v.CyclesPerByte, err
	})
	if err != nil {
		return nil, err
	}
	derive := newPlot("PBKDF2 with SHA-1 by length of the key", "", "million iterations per second on one core")
	err = addBars(derive, 11.5, inBytes(keys), derivers, func(g int, kernel string) (float64, error) {
		v, err := f.find(task{Suite: "kdf", Hash: "sha1", Kernel: kernel, Bytes: keys[g]})
		return v.IterationsPerSecond / 1e6, err
	})
	if err != nil {
		return nil, err
	}
	hash.Legend.XOffs, derive.Legend.XOffs = 190, 190
	return sheet(f, 720, 300, []*plot.Plot{hash, derive})
}

func inBytes(sizes []int) (list []string) {
	for _, n := range sizes {
		list = append(list, fmt.Sprintf("%d bytes", n))
	}
	return list
}

// drawVolume has a row for each direction and a column for each depth.
func drawVolume(f *figures) ([]byte, error) {
	kernels := f.kernels(func(t task) bool { return t.Suite == "volume" && t.Path == "fuse" })
	storage := ""
	for _, r := range f.Results {
		if r.Suite == "volume" {
			storage = r.Storage
		}
	}
	var rows [][]*plot.Plot
	for _, op := range []string{"read", "write"} {
		var row []*plot.Plot
		for _, depth := range []int{1, 8} {
			title := fmt.Sprintf("%s, %d at a time", op, depth)
			p := newPlot(title, "request", "MB/s (10^6 bytes)")
			err := addLines(p, []int{4 << 10, 64 << 10, 1 << 20}, kernels, func(bytes int, kernel string) (float64, error) {
				v, err := f.find(task{Suite: "volume", Storage: storage, Path: "fuse", Kernel: kernel, Op: op,
					Pattern: "sequential", Bytes: bytes, Depth: depth})
				return v.BytesPerSecond / 1e6, err
			})
			if err != nil {
				return nil, err
			}
			row = append(row, p)
		}
		rows = append(rows, row)
	}
	sameScale(slices.Concat(rows...))
	return sheet(f, 640, 560, rows...)
}
