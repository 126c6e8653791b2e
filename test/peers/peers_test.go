package main

import (
	"bytes"
	"context"
	stdsha1 "crypto/sha1"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"serpcrypt/cipher/serpent"
	"serpcrypt/hash/sha1"
	"serpcrypt/internal/cpucycles"
	"serpcrypt/kdf"
)

// Each peer takes part in the modes it is known for, and computes what the
// others do.
func TestPeersAgree(t *testing.T) {
	peers := sectorPeers()
	kernels := len(serpent.Kernels()) + 1
	for _, sectorSize := range []int{512, 4096} {
		var names []string
		for _, task := range sectorTasks(sectorSize) {
			names = append(names, task.name())
			c, err := sectorContest(task, peers)
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
			if len(c.contestants) != want {
				t.Errorf("%s: %d peers, want %d", task.name(), len(c.contestants), want)
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
	constant := func(name, cipher string, value, last byte) sectorPeer {
		return sectorPeer{name: name, cipher: cipher, modes: []string{"xts"}, open: func(sectorTask) (work, error) {
			return work{func(dst, _ []byte) {
				copy(dst, bytes.Repeat([]byte{value}, len(dst)))
				dst[len(dst)-1] = last
			}, func() {}}, nil
		}}
	}
	broken := sectorPeer{name: "broken", cipher: "a", modes: []string{"xts"}, open: func(sectorTask) (work, error) {
		return work{}, errors.New("no memory")
	}}
	for _, c := range []struct {
		peers []sectorPeer
		want  string
	}{
		{[]sectorPeer{constant("p", "a", 1, 2), constant("q", "b", 3, 4), constant("r", "a", 1, 2)}, ""},
		{[]sectorPeer{constant("p", "a", 1, 2), constant("q", "b", 3, 4), constant("r", "a", 1, 3)},
			"xts-dec, sectors of 512 bytes: r computes other bytes than p"},
		{[]sectorPeer{constant("p", "a", 0, 0), constant("q", "a", 0, 0)},
			"xts-dec, sectors of 512 bytes: p computes nothing but zeros"},
		{[]sectorPeer{broken}, "xts-dec of broken: no memory"},
	} {
		var results []result
		contest, err := sectorContest(sectorTask{mode: "xts", sectorSize: 512, bytes: 1024}, c.peers)
		if err == nil {
			results, err = contest.compare(context.Background(), 1)
		}
		switch {
		case c.want == "" && (err != nil || len(results) != len(c.peers)):
			t.Errorf("peers that agree: %d results, error is %v", len(results), err)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("error is %v, want %q", err, c.want)
		}
	}
}

func TestSHA1PeersAgree(t *testing.T) {
	peers := sha1Peers()
	if want := len(sha1.Kernels()) + 6; len(peers) != want {
		t.Errorf("%d peers, want %d", len(peers), want)
	}
	for _, task := range sha1Tasks {
		if err := sha1Contest(task, peers).check(); err != nil {
			t.Error(err)
		}
	}
}

// Where each call waits, the digests are those of the messages that the ones
// before chose.
func TestSHA1PeersWait(t *testing.T) {
	task := sha1Task{size: 3, count: 4, waiting: true}
	messages := []byte("abcdefghijkl")
	var want []byte
	for chosen := 0; len(want) < 4*sha1.Size; {
		sum := stdsha1.Sum(messages[3*chosen:][:3])
		want = append(want, sum[:]...)
		chosen = int(sum[0] % 4)
	}
	for _, p := range sha1Peers() {
		sums := make([]byte, 4*sha1.Size)
		if p.run(task, sums, messages); !bytes.Equal(sums, want) {
			t.Errorf("%s: got %x, want %x", p.name, sums, want)
		}
	}
}

func TestPBKDF2PeersAgree(t *testing.T) {
	peers := pbkdf2Peers()
	if want := len(sha1.ChainKernels()) + 5; len(peers) != want {
		t.Errorf("%d peers, want %d", len(peers), want)
	}
	for _, task := range pbkdf2Tasks {
		if err := pbkdf2Contest(task, peers).check(); err != nil {
			t.Error(err)
		}
	}
}

// One bit of the last digest, and of the last key of several, is enough.
func TestWrongDigestOrKeyIsFound(t *testing.T) {
	flipLast := func(p []byte) { p[len(p)-1] ^= 1 }

	hasher := sha1Peers()[0]
	liar := sha1Peer{"liar", func(t sha1Task, sums, messages []byte) { hasher.run(t, sums, messages); flipLast(sums) }}
	_, err := sha1Contest(sha1Tasks[2], []sha1Peer{hasher, liar}).compare(context.Background(), 1)
	if want := "sha1 of 64B-waiting: liar computes other bytes than " + hasher.name; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}

	deriver := pbkdf2Peers()[0]
	forger := pbkdf2Peer{"forger", func(keys []byte, jobs []kdf.Job) { deriver.derive(keys, jobs); flipLast(keys) }}
	_, err = pbkdf2Contest(pbkdf2Tasks[3], []pbkdf2Peer{deriver, forger}).compare(context.Background(), 1)
	if want := "pbkdf2 for 8x64B: forger computes other bytes than " + deriver.name; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

func TestReport(t *testing.T) {
	size, rounds := volumeBytes, volumeRounds
	defer func() { volumeBytes, volumeRounds = size, rounds }()
	volumeBytes, volumeRounds = 8<<20, 1
	var out strings.Builder
	if err := report(context.Background(), &out, 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^- libgcrypt \d+\.\d+`, `(?m)^- OpenSSL \d+\.\d+`, `(?m)^- Nettle \d+\.\d+$`, `(?m)^- go1\.\d+`,
		`(?m)^- github\.com/aead/serpent v0.*, golang\.org/x/crypto v\d`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("there is no %s in\n%s", want, out.String())
		}
	}
	// rows counts those of a peer with as many columns.
	rows := func(name string, columns int) int {
		row := fmt.Sprintf(`(?m)^    %s( +[\d.]+){%d}$`, regexp.QuoteMeta(name), columns)
		return len(regexp.MustCompile(row).FindAllString(out.String(), -1))
	}
	if missing := mountsMissing(); missing != nil {
		if want := "- mounts not measured: " + missing.Error(); !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	} else {
		for name, want := range map[string]int{"gocryptfs": 1, "gocryptfs, O_DIRECT": 1, "serpcrypt " + serpent.Auto.Resolve().String() + ", --raw": 1} {
			if n := rows(name, len(volumeTasks)); n != want {
				t.Errorf("%d rows of %s, want %d", n, name, want)
			}
		}
	}
	if !cpucycles.Known {
		return
	}
	for _, p := range sectorPeers() {
		columns := 7
		if !slices.Contains(p.modes, "ecb") {
			columns = 2
		}
		if n := rows(p.name, columns); n != 4 {
			t.Errorf("%d rows of %s", n, p.name)
		}
	}
	for _, p := range sha1Peers() {
		if n := rows(p.name, len(sha1Tasks)); n != 1 {
			t.Errorf("%d rows of %s with SHA-1", n, p.name)
		}
	}
	for _, p := range pbkdf2Peers() {
		if n := rows(p.name, len(pbkdf2Tasks)); n != 1 {
			t.Errorf("%d rows of %s with PBKDF2", n, p.name)
		}
	}
}

func TestTable(t *testing.T) {
	results := []result{
		{"ours", "ecb-enc", 1000, cpucycles.Cost{Nanoseconds: 500, Cycles: 1500}},
		{"a library", "ecb-enc", 1000, cpucycles.Cost{Nanoseconds: 2000}},
		{"ours", "ecb-decoded", 1000, cpucycles.Cost{Nanoseconds: 250, Cycles: 754}},
		{"ours", "cbc", 1000, cpucycles.Cost{Nanoseconds: 1e6, Cycles: 1}},
	}
	var out strings.Builder
	writeTable(&out, "Cycles", results, cyclesPerUnit)
	writeTable(&out, "Speed", results, megabytesPerSecond)
	writeTable(&out, "Iterations", results, millionsPerSecond)
	const want = `
Cycles:

               ecb-enc ecb-decoded cbc
    ours       1.50    0.75        0.00
    a library  -

Speed:

               ecb-enc ecb-decoded cbc
    ours       2000    4000        1
    a library  500

Iterations:

               ecb-enc  ecb-decoded cbc
    ours       2000.000 4000.000    1.000
    a library  500.000
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
