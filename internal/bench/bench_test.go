package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"serpcrypt/cipher/serpent"
	"serpcrypt/hash/sha1"
	"serpcrypt/internal/cpucycles"
)

// A measuring time that is over at once: each function runs a few times.
const atOnce = time.Nanosecond

func run(t *testing.T, o Options) *Report {
	t.Helper()
	o.Each = atOnce
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEverySuiteIsComplete(t *testing.T) {
	var steps []int
	r := run(t, Options{Progress: func(done, total int) { steps = append(steps, done, total) }})

	if r.Machine.CPU == "" || r.Machine.Kernel == "" || r.Machine.Cores < 1 {
		t.Errorf("machine is %+v", r.Machine)
	}

	got := map[string]int{}
	check := func(row string, perSecond, cycles, ratio float64, isReference bool) {
		got[row]++
		if perSecond <= 0 || ratio <= 0 || (cycles > 0) != cpucycles.Known {
			t.Errorf("%s: %v a second, %v cycles, ratio %v", row, perSecond, cycles, ratio)
		}
		if isReference && ratio != 1 {
			t.Errorf("%s: ratio to itself is %v", row, ratio)
		}
	}
	for _, x := range r.Serpent {
		check(fmt.Sprint(x.Suite, x.Kernel, x.Mode, x.Op, x.Bytes), x.BytesPerSecond, x.CyclesPerByte, x.RatioToGeneric, x.Kernel == "generic")
	}
	for _, x := range r.Sectors {
		check(fmt.Sprint(x.Suite, x.Kernel, x.Mode, x.Op, x.SectorSize, x.Bytes, x.Threads),
			x.BytesPerSecond, x.CyclesPerByte, x.RatioToGeneric, x.Kernel == "generic")
	}
	for _, x := range r.SHA1 {
		check(fmt.Sprint(x.Suite, x.Kernel, x.Bytes, x.UpdateBytes), x.BytesPerSecond, x.CyclesPerByte, x.RatioToStdlib, x.Kernel == "stdlib")
	}
	knownCycles := 0.0
	if cpucycles.Known { // the suites below do not report them
		knownCycles = 1
	}
	for _, x := range r.KDF {
		check(fmt.Sprint(x.Suite, x.Hash, x.Kernel, x.Bytes), x.IterationsPerSecond, knownCycles, x.RatioToStdlib, x.Kernel == "stdlib" && x.Hash == "sha1")
	}

	for _, x := range r.Unlock {
		check(fmt.Sprint(x.Suite, x.Kernel, x.Slots), x.IterationsPerSecond, knownCycles, x.TimeRatioToOneSlot, x.Slots == 1)
	}

	var want []string
	sizes := []int{16, 64, 256, 1024, 8192}
	for _, k := range serpent.Kernels() {
		for _, mode := range []string{"ecb", "cbc", "ctr", "lrw", "xts"} {
			for _, op := range []string{"enc", "dec"} {
				for _, size := range sizes {
					want = append(want, fmt.Sprint("serpent", k, mode, op, size))
				}
			}
		}
	}
	for _, k := range serpent.Kernels() {
		for _, op := range []string{"enc", "dec"} {
			for _, sectorSize := range []int{512, 4096} {
				row := func(mode string, bytes, threads int) {
					want = append(want, fmt.Sprint("sectors", k, mode, op, sectorSize, bytes, threads))
				}
				for _, mode := range []string{"xts", "cbc"} {
					row(mode, sectorSize, 1)
					row(mode, 64<<10, 1)
					row(mode, 1<<20, 1)
					if cores := runtime.GOMAXPROCS(0); cores > 1 {
						row(mode, 1<<20, cores)
					}
				}
				row("ecb", 64<<10, 1)
				row("ctr", 64<<10, 1)
				row("lrw", 64<<10, 1)
			}
		}
	}
	for size, writes := range map[int][]int{
		16: {}, 64: {16}, 256: {16, 64}, 1024: {16, 256}, 2048: {16, 256, 1024},
		4096: {16, 256, 1024}, 8192: {16, 256, 1024, 4096},
	} {
		want = append(want, fmt.Sprint("sha1", "stdlib", size, size))
		for _, k := range sha1.Kernels() {
			want = append(want, fmt.Sprint("sha1", k.String(), size, size))
		}
		for _, write := range writes {
			want = append(want, fmt.Sprint("sha1", "stdlib", size, write), fmt.Sprint("sha1", "generic", size, write))
			if k := sha1.Default(); k != sha1.Generic {
				want = append(want, fmt.Sprint("sha1", k.String(), size, write))
			}
		}
	}
	for _, size := range []int{20, 32, 64} {
		want = append(want, fmt.Sprint("kdf", "sha1", "stdlib", size), fmt.Sprint("kdf", "sha1", "auto", size),
			fmt.Sprint("kdf", "sha256", "stdlib", size), fmt.Sprint("kdf", "sha512", "stdlib", size))
		for _, k := range sha1.ChainKernels() {
			want = append(want, fmt.Sprint("kdf", "sha1", k.String(), size))
		}
	}
	for slots := 1; slots <= 8; slots++ {
		want = append(want, fmt.Sprint("unlock", "auto", slots))
		for _, k := range sha1.ChainKernels() {
			want = append(want, fmt.Sprint("unlock", k.String(), slots))
		}
	}
	for _, row := range want {
		if got[row] != 1 {
			t.Errorf("%s is there %d times", row, got[row])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}

	var tables strings.Builder
	if err := r.WriteTables(&tables, Layout{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(tables.String()) {
		if width := len(strings.TrimRight(line, "\n")); width > 100 {
			t.Errorf("line of %d characters: %s", width, line)
		}
	}

	contests := 10*5 + 4*(3+3+3) + 22 + 9 + len(sha1.ChainKernels()) + 1
	if len(steps) != 2*contests {
		t.Fatalf("progress was told %d times, want %d", len(steps)/2, contests)
	}
	for i := range contests {
		if steps[2*i] != i || steps[2*i+1] != contests {
			t.Fatalf("progress number %d is %d of %d", i, steps[2*i], steps[2*i+1])
		}
	}
}

func TestSuitesAndKernelsCanBeChosen(t *testing.T) {
	sectors := 4 * (3 + 3 + 3)
	if runtime.GOMAXPROCS(0) > 1 {
		sectors += 4 * 2
	}
	r := run(t, Options{Suites: []string{"sha1", "sha1"}})
	if len(r.Serpent) != 0 || len(r.Sectors) != 0 || len(r.SHA1) < 3*22-1 || len(r.KDF) != 0 {
		t.Errorf("sha1 only: %d, %d, %d and %d results", len(r.Serpent), len(r.Sectors), len(r.SHA1), len(r.KDF))
	}
	r = run(t, Options{Suites: []string{"sectors"}, Kernel: serpent.Generic})
	if len(r.Serpent) != 0 || len(r.Sectors) != sectors {
		t.Errorf("sectors only: %d and %d results", len(r.Serpent), len(r.Sectors))
	}
	for _, k := range []serpent.Kernel{serpent.Generic, serpent.Auto.Resolve()} {
		r := run(t, Options{Suites: []string{"serpent"}, Kernel: k})
		if len(r.Serpent) != 50 || len(r.Sectors) != sectors || len(r.SHA1) != 0 {
			t.Errorf("%s only: %d, %d and %d results", k, len(r.Serpent), len(r.Sectors), len(r.SHA1))
		}
		for _, x := range r.Sectors {
			if x.Kernel != k.String() {
				t.Fatalf("%s only: a result of %s", k, x.Kernel)
			}
		}
		for _, x := range r.Serpent {
			if x.Kernel != k.String() {
				t.Fatalf("%s only: a result of %s", k, x.Kernel)
			}
		}
	}
	var unknown *UnknownSuiteError
	if _, err := Run(context.Background(), Options{Suites: []string{"sha1", "aes"}}); !errors.As(err, &unknown) || unknown.Name != "aes" {
		t.Errorf("unknown suite: error is %v", err)
	}
}

func TestSuitesBringOthersAlong(t *testing.T) {
	for chosen, want := range map[string]string{"serpent": "serpent sectors", "sectors": "sectors", "sha1": "sha1", "kdf": "kdf unlock", "unlock": "unlock"} {
		var got []string
		for _, s := range suites {
			if s.isIn([]string{chosen}) {
				got = append(got, s.name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is %v, want %s", chosen, got, want)
		}
	}
}

func TestRunStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	last := 0
	_, err := Run(ctx, Options{Each: atOnce, Progress: func(done, _ int) {
		if last = done; done == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || last != 3 {
		t.Errorf("after step %d: error is %v", last, err)
	}
}

// What a contest holds is given back, whether or not it comes to it.
func TestRunCloses(t *testing.T) {
	defer func(all []suite) { suites = all }(suites)
	closed := 0
	output := make([]byte, 1)
	held := contest{
		contestants: []contestant{{"c", alone(func() { output[0] = 1 }), output}},
		report:      func([]cpucycles.Cost) {},
		close:       func() error { closed++; return nil },
	}
	suites = []suite{{name: "held", contests: func(*Report, Options) ([]contest, error) { return []contest{held, held}, nil }}}
	run(t, Options{})
	if closed != 2 {
		t.Errorf("%d of 2 contests were closed", closed)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, Options{Each: atOnce}); err == nil || closed != 4 {
		t.Errorf("cancelled: error is %v, %d of 2 contests were closed", err, closed-2)
	}
}

func TestWrongOutputIsFound(t *testing.T) {
	fill := func(name string, b byte) contestant {
		p := make([]byte, 3)
		return contestant{name, alone(func() { p[0], p[2] = 1, b }), p}
	}
	nothing := contestant{"idle", alone(func() {}), make([]byte, 3)}
	shared := func(b byte) contestant {
		p := make([]byte, 3)
		return contestant{"shared", []func(){func() { p[0] = 1 }, func() { p[2] = b }}, p}
	}
	stale := fill("stale", 7)
	stale.shares[0]()
	stale.shares = alone(func() {})
	for _, c := range []struct {
		contestants []contestant
		want        string
	}{
		{[]contestant{fill("a", 7), fill("b", 7)}, ""},
		{[]contestant{fill("a", 7), fill("b", 7), fill("c", 8)}, "bench: wrong output: work: c computes other bytes than a"},
		{[]contestant{fill("a", 7), shared(7)}, ""},
		{[]contestant{fill("a", 7), shared(8)}, "bench: wrong output: work: shared computes other bytes than a"},
		{[]contestant{nothing, nothing}, "bench: wrong output: work: idle computes nothing but zeros"},
		{[]contestant{fill("a", 7), stale}, "bench: wrong output: work: stale computes other bytes than a"},
	} {
		reported := false
		contest := contest{what: "work", contestants: c.contestants, report: func([]cpucycles.Cost) { reported = true }}
		err := contest.measure(context.Background(), atOnce)
		if c.want == "" {
			if err != nil || !reported {
				t.Errorf("good output: error is %v", err)
			}
			continue
		}
		var mismatch *MismatchError
		if !errors.As(err, &mismatch) || err.Error() != c.want || reported {
			t.Errorf("error is %v, want %q", err, c.want)
		}
	}
}

// Each operation computes something of its own, and decryption undoes
// encryption: the table's columns are what they say.
func TestOperations(t *testing.T) {
	e, err := newEngine(serpent.Generic)
	if err != nil {
		t.Fatal(err)
	}
	const size = 64
	plain := testBytes(size)
	seen := map[string]string{}
	outputs := map[string][]byte{}
	for _, o := range operations {
		src := plain
		if o.op == "dec" {
			src = outputs[o.mode]
		}
		out := make([]byte, size)
		o.run(e, out, src)
		if o.op == "dec" {
			if string(out) != string(plain) {
				t.Errorf("%s-dec does not undo %s-enc", o.mode, o.mode)
			}
			continue
		}
		outputs[o.mode] = out
		if other, ok := seen[string(out)]; ok {
			t.Errorf("%s computes the same as %s", o.mode, other)
		}
		seen[string(out)] = o.mode
	}
	if len(seen) != 5 {
		t.Errorf("%d modes", len(seen))
	}
}

func TestSpeedOf(t *testing.T) {
	got := speedOf(64, cpucycles.Cost{Nanoseconds: 320, Cycles: 1000}, cpucycles.Cost{Nanoseconds: 800, Cycles: 2500})
	if want := (speed{perSecond: 200e6, cyclesPerUnit: 15.625, ratio: 2.5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got = speedOf(3, cpucycles.Cost{Nanoseconds: 7}, cpucycles.Cost{Nanoseconds: 1})
	if want := (speed{perSecond: 428571429, cyclesPerUnit: 0, ratio: 0.143}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// sample is a small report, for the layouts.
func sample() *Report {
	r := &Report{Machine: Machine{"Some CPU", 4, "Linux 7.0"}}
	for _, x := range []struct {
		kernel string
		op     string
		bytes  int
		ratio  float64
	}{
		{"generic", "enc", 16, 1}, {"sse2", "enc", 16, 0.996}, {"generic", "enc", 8192, 1}, {"sse2", "enc", 8192, 2.5},
		{"generic", "dec", 16, 1}, {"sse2", "dec", 16, 1.014}, {"generic", "dec", 8192, 1}, {"sse2", "dec", 8192, 2.537},
	} {
		r.Serpent = append(r.Serpent, SerpentResult{"serpent", x.kernel, "ecb", x.op, x.bytes, 130e6 * x.ratio, 27.1 / x.ratio, x.ratio})
	}
	for _, x := range []struct {
		kernel, mode, op           string
		sectorSize, bytes, threads int
		ratio                      float64
	}{
		{"generic", "xts", "enc", 512, 512, 1, 1}, {"avx512", "xts", "enc", 512, 512, 1, 9.5},
		{"generic", "xts", "enc", 4096, 1 << 20, 1, 1}, {"avx512", "xts", "enc", 4096, 1 << 20, 1, 20},
		{"generic", "xts", "enc", 4096, 1 << 20, 2, 1}, {"avx512", "xts", "enc", 4096, 1 << 20, 2, 19},
		{"generic", "ecb", "dec", 4096, 64 << 10, 1, 1}, {"avx512", "ecb", "dec", 4096, 64 << 10, 1, 24},
	} {
		speed := x.ratio
		if x.threads > 1 {
			speed *= 1.9
		}
		r.Sectors = append(r.Sectors, SectorsResult{"sectors", x.kernel, x.mode, x.op, x.sectorSize, x.bytes, x.threads,
			130e6 * speed, 27.1 / x.ratio, x.ratio})
	}
	r.SHA1 = []SHA1Result{
		{"sha1", "stdlib", 16, 16, 1e8, 0, 1}, {"sha1", "generic", 16, 16, 9e7, 0, 0.9}, {"sha1", "shani", 16, 16, 2e8, 0, 2},
		{"sha1", "stdlib", 64, 16, 1e8, 20, 1}, {"sha1", "generic", 64, 16, 9e7, 22, 0.9}, {"sha1", "shani", 64, 16, 2e8, 9.9, 2},
	}
	r.sha1Kernel = "shani"
	r.KDF = []KDFResult{{"kdf", "sha1", "generic", 20, 2345678, 0.512}, {"kdf", "sha256", "stdlib", 20, 12345678, 1}}
	r.Unlock = []UnlockResult{{"unlock", "avx2", 1, 3210987, 1}, {"unlock", "avx2", 8, 1034567, 3.104}}
	return r
}

func TestTables(t *testing.T) {
	const want = `Some CPU, 4 cores, Linux 7.0

serpent, generic, MB/s (10^6 bytes)

size    ecb-enc ecb-dec
16B     130.0   130.0
8192B   130.0   130.0

serpent, generic, core cycles per byte

size    ecb-enc ecb-dec
16B     27.10   27.10
8192B   27.10   27.10

serpent, sse2/generic speed ratios

size    ecb-enc ecb-dec
16B     1.00x   1.01x
8192B   2.50x   2.54x

serpent, sse2, MB/s (10^6 bytes)

size    ecb-enc ecb-dec
16B     129.5   131.8
8192B   325.0   329.8

serpent, sse2, core cycles per byte

size    ecb-enc ecb-dec
16B     27.21   26.73
8192B   10.84   10.68

sectors, generic, MB/s (10^6 bytes)

run/sector          xts-enc ecb-dec
512B/512B           130.0
1M/4096B            130.0
1M/4096B, 2 threads 247.0
64K/4096B                   130.0

sectors, generic, core cycles per byte

run/sector          xts-enc ecb-dec
512B/512B           27.10
1M/4096B            27.10
1M/4096B, 2 threads 27.10
64K/4096B                   27.10

sectors, avx512/generic speed ratios

run/sector          xts-enc ecb-dec
512B/512B           9.50x
1M/4096B            20.00x
1M/4096B, 2 threads 19.00x
64K/4096B                   24.00x

sectors, avx512, MB/s (10^6 bytes)

run/sector          xts-enc ecb-dec
512B/512B           1235.0
1M/4096B            2600.0
1M/4096B, 2 threads 4693.0
64K/4096B                   3120.0

sectors, avx512, core cycles per byte

run/sector          xts-enc ecb-dec
512B/512B           2.85
1M/4096B            1.35
1M/4096B, 2 threads 1.43
64K/4096B                   1.13

sectors, speed ratios of 2 threads to one

kernel and run   xts-enc
generic 1M/4096B 1.90x
avx512 1M/4096B  1.80x

sha1, speed ratios to the standard library

size    stdlib  generic shani
16B     1.00x   0.90x   2.00x

sha1, MB/s (10^6 bytes)

size    stdlib  generic shani
16B     100.0   90.0    200.0

sha1, core cycles per byte

size    stdlib  generic shani
16B     -       -       -

sha1, core cycles per byte in writes of less, generic and shani

size/write generic shani   change
16B/16B    -       -       -55.0%
64B/16B    22.00   9.90    -55.0%

pbkdf2 by length of the key, speed ratios to the standard library

hash          20B
sha1 generic  0.51x
sha256 stdlib 1.00x

pbkdf2 by length of the key, million iterations per second

hash          20B
sha1 generic  2.346
sha256 stdlib 12.346

unlocking by number of key slots, million iterations per second of each

kernel  1       8
avx2    3.211   1.035

unlocking by number of key slots, time ratios to one slot

kernel  1       8
avx2    1.00x   3.10x
`
	var got strings.Builder
	if err := sample().WriteTables(&got, Layout{}); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestJSON(t *testing.T) {
	r := sample()
	r.Serpent = r.Serpent[1:2]
	r.Sectors = r.Sectors[4:5]
	r.SHA1 = r.SHA1[3:5]
	got, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "machine": {
    "cpu": "Some CPU",
    "cores": 4,
    "kernel": "Linux 7.0"
  },
  "results": [
    {
      "suite": "serpent",
      "kernel": "sse2",
      "mode": "ecb",
      "op": "enc",
      "bytes": 16,
      "bytes_per_second": 129480000,
      "cycles_per_byte": 27.208835341365464,
      "ratio_to_generic": 0.996
    },
    {
      "suite": "sectors",
      "kernel": "generic",
      "mode": "xts",
      "op": "enc",
      "sector_size": 4096,
      "bytes": 1048576,
      "threads": 2,
      "bytes_per_second": 247000000,
      "cycles_per_byte": 27.1,
      "ratio_to_generic": 1
    },
    {
      "suite": "sha1",
      "kernel": "stdlib",
      "bytes": 64,
      "update_bytes": 16,
      "bytes_per_second": 100000000,
      "cycles_per_byte": 20,
      "ratio_to_stdlib": 1
    },
    {
      "suite": "sha1",
      "kernel": "generic",
      "bytes": 64,
      "update_bytes": 16,
      "bytes_per_second": 90000000,
      "cycles_per_byte": 22,
      "ratio_to_stdlib": 0.9
    },
    {
      "suite": "kdf",
      "hash": "sha1",
      "kernel": "generic",
      "bytes": 20,
      "iterations_per_second": 2345678,
      "ratio_to_stdlib": 0.512
    },
    {
      "suite": "kdf",
      "hash": "sha256",
      "kernel": "stdlib",
      "bytes": 20,
      "iterations_per_second": 12345678,
      "ratio_to_stdlib": 1
    },
    {
      "suite": "unlock",
      "kernel": "avx2",
      "slots": 1,
      "iterations_per_second": 3210987,
      "time_ratio_to_one_slot": 1
    },
    {
      "suite": "unlock",
      "kernel": "avx2",
      "slots": 8,
      "iterations_per_second": 1034567,
      "time_ratio_to_one_slot": 3.104
    }
  ]
}`
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
	empty, err := json.Marshal(&Report{})
	if want := `{"machine":{"cpu":"","cores":0,"kernel":""},"results":[]}`; err != nil || string(empty) != want {
		t.Errorf("empty report is %s, %v", empty, err)
	}
}
