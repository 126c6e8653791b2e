package bench

import (
	"bytes"
	"slices"
	"testing"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/cpucycles"
)

func newTestCiphers(t *testing.T, sectorSize int, kernels ...serpent.Kernel) []*modes.Sectors {
	t.Helper()
	ciphers, wipe, err := sectorCiphers("serpent-xts-plain64", testBytes(64), sectorSize, kernels)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wipe)
	return ciphers
}

// Each share has sectors of its own, about equally many, and together they do
// what one thread does.
func TestSharesOfARun(t *testing.T) {
	const sectorSize = 1024
	s := newTestCiphers(t, sectorSize, serpent.Generic)[0]
	for _, c := range []struct{ sectors, threads, largest int }{
		{1, 1, 1}, {8, 1, 8}, {8, 2, 4}, {8, 3, 3}, {7, 4, 2}, {2, 4, 1},
	} {
		src := testBytes(c.sectors * sectorSize)
		for _, o := range sectorOperations {
			want, got := make([]byte, len(src)), make([]byte, len(src))
			o.run(s, want, src, firstSector)
			shares := o.shares(s, got, src, c.threads)
			if len(shares) != c.threads {
				t.Fatalf("%+v: %d shares", c, len(shares))
			}
			doneBy := make([]int, c.sectors)
			for _, share := range shares {
				clear(got)
				share()
				n := 0
				for i := range c.sectors {
					if sector := got[i*sectorSize:][:sectorSize]; !allZero(sector) {
						doneBy[i]++
						n++
						if !bytes.Equal(sector, want[i*sectorSize:][:sectorSize]) {
							t.Errorf("%+v, %s: wrong output in sector %d", c, o.op, i)
						}
					}
				}
				if n > c.largest {
					t.Errorf("%+v, %s: a share of %d sectors", c, o.op, n)
				}
			}
			if slices.Min(doneBy) != 1 || slices.Max(doneBy) != 1 {
				t.Errorf("%+v, %s: sectors were done so often: %v", c, o.op, doneBy)
			}
		}
	}
}

// The costs of a contest's contestants get to their rows.
func TestReportOfARun(t *testing.T) {
	fastest := serpent.Auto.Resolve()
	ciphers := newTestCiphers(t, 512, serpent.Generic, fastest)
	for _, only := range []serpent.Kernel{serpent.Auto, serpent.Generic} {
		report := &Report{}
		b := sectorsBench{report: report, only: only, src: testBytes(1024), outputs: make([][]byte, 4)}
		for i := range b.outputs {
			b.outputs[i] = make([]byte, 1024)
		}
		c := b.contest("xts", sectorOperations[0], sectorRun{1024, []int{1, 3}}, ciphers)
		c.report([]cpucycles.Cost{
			{Nanoseconds: 20480, Cycles: 40960}, {Nanoseconds: 2048, Cycles: 4096},
			{Nanoseconds: 10240, Cycles: 20480}, {Nanoseconds: 1024, Cycles: 2048},
		})
		row := func(kernel serpent.Kernel, threads int, perSecond, cycles, ratio float64) SectorsResult {
			return SectorsResult{"sectors", kernel.String(), "xts", "enc", 512, 1024, threads, perSecond, cycles, ratio}
		}
		want := []SectorsResult{
			row(serpent.Generic, 1, 5e7, 40, 1), row(fastest, 1, 5e8, 4, 10),
			row(serpent.Generic, 3, 1e8, 60, 1), row(fastest, 3, 1e9, 6, 10),
		}
		if only == serpent.Generic && fastest != serpent.Generic {
			want = []SectorsResult{want[0], want[2]}
		}
		if !slices.Equal(report.Sectors, want) {
			t.Errorf("only %v: got %+v, want %+v", only, report.Sectors, want)
		}
	}
}

// When all contests are closed no key is left.
func TestSectorsAreWiped(t *testing.T) {
	contests, err := sectorsContests(&Report{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contests {
		if c.close != nil {
			c.close()
		}
	}
	for _, c := range contests {
		for _, x := range c.contestants {
			func() {
				defer func() {
					if got, want := recover(), "modes: used after Wipe"; got != want {
						t.Errorf("%s, %s: panic %v, want %s", c.what, x.name, got, want)
					}
				}()
				x.shares[0]()
			}()
		}
	}
}

// Every mode computes something of its own, and decryption undoes encryption.
func TestSectorModes(t *testing.T) {
	src := testBytes(4096)
	seen := map[string]string{string(src): "nothing"}
	for _, m := range sectorModes {
		ciphers, wipe, err := sectorCiphers(m.spec, testBytes(m.keySize), 512, []serpent.Kernel{serpent.Generic})
		if err != nil {
			t.Fatal(err)
		}
		encrypted, decrypted := make([]byte, len(src)), make([]byte, len(src))
		sectorOperations[0].run(ciphers[0], encrypted, src, firstSector)
		sectorOperations[1].run(ciphers[0], decrypted, encrypted, firstSector)
		if !bytes.Equal(decrypted, src) {
			t.Errorf("%s: dec does not undo enc", m.mode)
		}
		if other, ok := seen[string(encrypted)]; ok {
			t.Errorf("%s computes the same as %s", m.mode, other)
		}
		seen[string(encrypted)] = m.mode
		wipe()
	}
}
