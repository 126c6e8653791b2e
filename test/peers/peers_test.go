package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/cpucycles"
)

func newPeers(t *testing.T) []peer {
	t.Helper()
	peers, err := allPeers()
	if err != nil {
		t.Fatal(err)
	}
	return peers
}

// Each peer takes part in the modes it is known for, and computes what the
// others do.
func TestPeersAgree(t *testing.T) {
	peers := newPeers(t)
	kernels := len(serpent.Kernels()) + 1
	for _, sectorSize := range []int{512, 4096} {
		var names []string
		for _, task := range tasks(sectorSize) {
			names = append(names, task.name())
			c, err := newContest(task, peers)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.check(); err != nil {
				t.Error(err)
			}
			want := kernels + 1 // libgcrypt
			if task.mode == "xts" {
				want += 3
			}
			if len(c.peers) != want {
				t.Errorf("%s: %d peers, want %d", task.name(), len(c.peers), want)
			}
			c.close()
		}
		if want := "ecb-enc ecb-dec cbc-enc cbc-dec ctr xts-enc xts-dec"; strings.Join(names, " ") != want {
			t.Errorf("tasks are %v, want %s", names, want)
		}
	}
}

// One byte that differs keeps everything from being measured.
func TestWrongPeerIsFound(t *testing.T) {
	constant := func(name, cipher string, value, last byte) peer {
		return peer{name: name, cipher: cipher, modes: []string{"xts"}, open: func(task) (work, error) {
			return work{func(dst, _ []byte) {
				copy(dst, bytes.Repeat([]byte{value}, len(dst)))
				dst[len(dst)-1] = last
			}, func() {}}, nil
		}}
	}
	broken := peer{name: "broken", cipher: "a", modes: []string{"xts"}, open: func(task) (work, error) {
		return work{}, errors.New("no memory")
	}}
	for _, c := range []struct {
		peers []peer
		want  string
	}{
		{[]peer{constant("p", "a", 1, 2), constant("q", "b", 3, 4), constant("r", "a", 1, 2)}, ""},
		{[]peer{constant("p", "a", 1, 2), constant("q", "b", 3, 4), constant("r", "a", 1, 3)},
			"xts-dec, sectors of 512 bytes: r computes other bytes than p"},
		{[]peer{constant("p", "a", 0, 0), constant("q", "a", 0, 0)},
			"xts-dec, sectors of 512 bytes: p computes nothing but zeros"},
		{[]peer{broken}, "xts-dec of broken: no memory"},
	} {
		results, err := compare(context.Background(), task{mode: "xts", sectorSize: 512, bytes: 1024}, c.peers, 1)
		switch {
		case c.want == "" && (err != nil || len(results) != len(c.peers)):
			t.Errorf("peers that agree: %d results, error is %v", len(results), err)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("error is %v, want %q", err, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	var out strings.Builder
	if err := report(context.Background(), &out, 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^- libgcrypt \d+\.\d+`, `(?m)^- OpenSSL \d+\.\d+`, `(?m)^- go1\.\d+`,
		`(?m)^- github\.com/aead/serpent v0.*, golang\.org/x/crypto v\d`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("there is no %s in\n%s", want, out.String())
		}
	}
	for _, p := range newPeers(t) {
		columns := 7
		if !slices.Contains(p.modes, "ecb") {
			columns = 2
		}
		row := fmt.Sprintf(`(?m)^    %s( +[\d.]+){%d}$`, regexp.QuoteMeta(p.name), columns)
		if n := len(regexp.MustCompile(row).FindAllString(out.String(), -1)); cpucycles.Known && n != 4 {
			t.Errorf("%d rows of %s", n, p.name)
		}
	}
}

func TestTable(t *testing.T) {
	enc, dec := task{mode: "ecb", encrypt: true, bytes: 1000}, task{mode: "ecb", bytes: 1000}
	results := []result{
		{"ours", enc, cpucycles.Cost{Nanoseconds: 500, Cycles: 1500}}, {"a library", enc, cpucycles.Cost{Nanoseconds: 2000}},
		{"ours", dec, cpucycles.Cost{Nanoseconds: 250, Cycles: 754}},
	}
	var out strings.Builder
	writeTable(&out, "Cycles", results, cyclesPerByte)
	writeTable(&out, "Speed", results, megabytesPerSecond)
	const want = `
Cycles:

               ecb-enc ecb-dec
    ours       1.50    0.75
    a library  -

Speed:

               ecb-enc ecb-dec
    ours       2000    4000
    a library  500
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
