package bench

import (
	"slices"
	"strings"
	"testing"
)

// speeds of kernels, as multiples of the portable code's or of Go's library.
type speeds []struct {
	kernel string
	ratio  float64
}

// kernels are those of a machine.
type kernels struct {
	serpent, sha1, chains speeds
	chosenSHA1            string
	cores                 int
}

var fullKernels = kernels{
	serpent: speeds{{"generic", 1}, {"sse2", 2.3}, {"avx2", 4.7}, {"avx512", 12.6}},
	sha1:    speeds{{"generic", 0.41}, {"scalar", 0.54}, {"avx2", 0.59}, {"shani", 1.01}}, chosenSHA1: "shani",
	chains: speeds{{"generic", 0.9}, {"avx512", 5.28}, {"auto", 5.33}},
	cores:  2,
}

// fixedReport has figures for all that sentences speak of, and for other modes,
// sizes and directions ones that are larger.
func fixedReport(k kernels) *Report {
	r := &Report{Machine: Machine{"Some CPU", k.cores, "Linux 7.0"}, sha1Kernel: k.chosenSHA1}
	for _, x := range k.serpent {
		for _, mode := range []string{"xts", "ecb"} {
			for _, op := range []string{"enc", "dec"} {
				speed := 136e6 * x.ratio
				if mode != "xts" || op != "dec" {
					speed *= 3
				}
				for _, size := range []int{16, 8192} {
					r.Serpent = append(r.Serpent, SerpentResult{"serpent", x.kernel, mode, op, size, speed * 8192 / float64(size), 20 / x.ratio, x.ratio})
				}
				for _, size := range []int{512, 4096} {
					for _, threads := range slices.Compact([]int{1, k.cores}) {
						r.Sectors = append(r.Sectors, SectorsResult{"sectors", x.kernel, mode, op, size, 1 << 20, threads,
							speed * 4096 / float64(size) * (1 + 0.9*float64(threads-1)), 20 / x.ratio, x.ratio})
					}
				}
			}
		}
	}
	for _, x := range k.sha1 {
		r.SHA1 = append(r.SHA1, SHA1Result{"sha1", x.kernel, 8192, 8192, 1400e6 * x.ratio, 2 / x.ratio, x.ratio},
			SHA1Result{"sha1", x.kernel, 8192, 16, 3e9 * x.ratio, 2 / x.ratio, x.ratio})
	}
	for _, x := range k.chains {
		r.KDF = append(r.KDF, KDFResult{"kdf", "sha1", x.kernel, 64, 1067000 * x.ratio, x.ratio},
			KDFResult{"kdf", "sha1", x.kernel, 20, 4067000 * x.ratio, x.ratio})
		r.Unlock = append(r.Unlock, UnlockResult{"unlock", x.kernel, 1, 1067000 * x.ratio, 1},
			UnlockResult{"unlock", x.kernel, 8, 1067000 * x.ratio / 3.18, 3.18})
	}
	cycles := 1.8
	for _, size := range []int{4096, 1 << 20} {
		for _, op := range []string{"read", "write"} {
			null := map[string]float64{"read": 3239e6, "write": 2460e6}[op]
			add := func(path, kernel string, ratio float64, added *float64) {
				x := VolumeResult{"volume", "tmpfs", path, kernel, op, "sequential", size, 1, null * ratio, ratio, added}
				random, deeper := x, x
				random.Pattern, random.BytesPerSecond = "random", 9*x.BytesPerSecond
				deeper.Depth, deeper.BytesPerSecond = 8, 9*x.BytesPerSecond
				r.Volume = append(r.Volume, random, x, deeper)
			}
			add("fuse", "null", 1, nil)
			add("file", "none", 2, nil)
			for _, x := range k.serpent {
				ratio := x.ratio / (x.ratio + 11)
				if op == "write" {
					ratio *= 1.2
				}
				if size == 4096 {
					ratio *= 1.5
				}
				add("fuse", x.kernel, ratio, &cycles)
				add("ext4", x.kernel, 3, &cycles)
			}
		}
	}
	return r
}

func TestSentences(t *testing.T) {
	for name, c := range map[string]struct {
		kernels kernels
		want    []string
	}{
		"all kernels": {fullKernels, []string{
			"Serpent-XTS decrypts 1.7 GB/s on one core with AVX-512, 13 times as fast as the portable code.",
			"Sectors of 4096 bytes are decrypted at 1.7 GB/s on one core with AVX-512, 13 times as fast as the portable code; 2 cores do 3.3 GB/s.",
			"SHA-1 hashes 1.4 GB/s with SHA-NI, as fast as Go's standard library.",
			"PBKDF2 with SHA-1 does 5.7 million iterations a second for a key of 64 bytes, 5.3 times as fast as Go's standard library.",
			"Unlocking one slot takes 1.0 s if create may choose its iterations, 5.7 million on one core here; to try 8 takes 3.2 s.",
			"An open container reads 1.7 GB/s and writes 1.6 GB/s with AVX-512, 53 % and 64 % of what it would without a cipher.",
		}},
		"no AVX-512, no SHA-NI": {kernels{
			serpent: speeds{{"generic", 1}, {"sse2", 2.3}, {"avx2", 4.7}},
			sha1:    speeds{{"generic", 0.8}, {"avx2", 1.17}}, chosenSHA1: "avx2",
			chains: speeds{{"generic", 0.9}, {"auto", 2.59}},
			cores:  2,
		}, []string{
			"Serpent-XTS decrypts 639 MB/s on one core with AVX2, 4.7 times as fast as the portable code.",
			"Sectors of 4096 bytes are decrypted at 639 MB/s on one core with AVX2, 4.7 times as fast as the portable code; 2 cores do 1.2 GB/s.",
			"SHA-1 hashes 1.6 GB/s with AVX2, 1.2 times as fast as Go's standard library.",
			"PBKDF2 with SHA-1 does 2.8 million iterations a second for a key of 64 bytes, 2.6 times as fast as Go's standard library.",
			"Unlocking one slot takes 1.0 s if create may choose its iterations, 2.8 million on one core here; to try 8 takes 3.2 s.",
			"An open container reads 970 MB/s and writes 884 MB/s with AVX2, 30 % and 36 % of what it would without a cipher.",
		}},
		"one kernel, one core": {kernels{
			serpent: speeds{{"generic", 1}},
			sha1:    speeds{{"generic", 0.41}}, chosenSHA1: "generic",
			chains: speeds{{"generic", 0.9}, {"auto", 0.9}},
			cores:  1,
		}, []string{
			"Serpent-XTS decrypts 136 MB/s on one core with the portable code.",
			"Sectors of 4096 bytes are decrypted at 136 MB/s on one core with the portable code.",
			"SHA-1 hashes 574 MB/s with the portable code, at 41 % of the speed of Go's standard library.",
			"PBKDF2 with SHA-1 does 1.0 million iterations a second for a key of 64 bytes, as fast as Go's standard library.",
			"Unlocking one slot takes 1.0 s if create may choose its iterations, 1.0 million on one core here; to try 8 takes 3.2 s.",
			"An open container reads 270 MB/s and writes 246 MB/s with the portable code, 8 % and 10 % of what it would without a cipher.",
		}},
		"--kernel of another processor": {kernels{serpent: speeds{{"neon", 3.14}}, cores: 1}, []string{
			"Serpent-XTS decrypts 427 MB/s on one core with neon, 3.1 times as fast as the portable code.",
			"Sectors of 4096 bytes are decrypted at 427 MB/s on one core with neon, 3.1 times as fast as the portable code.",
			"", "", "",
			"An open container reads 719 MB/s and writes 656 MB/s with neon, 22 % and 27 % of what it would without a cipher.",
		}},
		"nothing": {kernels{}, make([]string, 6)},
	} {
		t.Run(name, func(t *testing.T) {
			for i, p := range fixedReport(c.kernels).parts() {
				if p.sentence != c.want[i] {
					t.Errorf("%s: got  %q,\nwant %q", suites[i].name, p.sentence, c.want[i])
				}
			}
		})
	}
}

// TestSentencesEndTheirSuites: each comes once, behind the tables of its suite.
func TestSentencesEndTheirSuites(t *testing.T) {
	var out strings.Builder
	r := fixedReport(fullKernels)
	if err := r.WriteTables(&out, Layout{}); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for i, p := range r.parts() {
		for _, table := range p.tables {
			_, after, ok := strings.Cut(rest, "\n"+table.title+"\n")
			if !ok {
				t.Fatalf("%s: the table %q is not behind what comes before it", suites[i].name, table.title)
			}
			rest = after
		}
		before, after, ok := strings.Cut(rest, "\n"+(Layout{}).wrap(p.sentence))
		if !ok || strings.Contains(before, "\n\n") {
			t.Errorf("%s: behind its last table comes %q", suites[i].name, before)
		}
		rest = after
	}
	if rest != "" {
		t.Errorf("in the end comes %q", rest)
	}
}

func TestBeside(t *testing.T) {
	for ratio, want := range map[float64]string{
		12.6: ", 13 times as fast as it", 9.94: ", 9.9 times as fast as it", 1.2: ", 1.2 times as fast as it",
		1.1: ", as fast as it", 1: ", as fast as it", 0.9: ", as fast as it", 0.8: ", at 80 % of the speed of it",
	} {
		if got := beside(ratio, "it"); got != want {
			t.Errorf("%v: %q, want %q", ratio, got, want)
		}
	}
}
