package fsprobe

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"serpcrypt/internal/golden"
)

const mib = 1 << 20

// disks are the files of testdata, with the size of the disk that each one is
// the beginning of, where the format states one.
var disks = map[string]Found{
	"ext2":          {"ext2", 4 * mib},
	"ext3":          {"ext3", 8 * mib},
	"ext4":          {"ext4", 8 * mib},
	"ext4-64bit-1k": {"ext4", 16 * mib},
	"xfs":           {"xfs", 300 * mib},
	"btrfs":         {"btrfs", 128 * mib},
	"vfat12":        {"vfat", 1 * mib},
	"vfat16":        {"vfat", 16 * mib},
	"vfat32":        {"vfat", 40 * mib},
	"exfat":         {"exfat", 8 * mib},
	"ntfs":          {"ntfs", 8*mib - 512}, // all but the backup boot sector
	"f2fs":          {"f2fs", 64 * mib},
	"squashfs":      {"squashfs", 221},
	"erofs":         {"erofs", 25 * 4096},
	"nilfs2":        {"nilfs2", 140 * mib},
	"udf":           {"udf", 0},
	"udf4k":         {"udf", 0},
	"iso9660":       {"iso9660", 175 * 2048},
	"swap":          {"swap", 1 * mib},
	"swap64k":       {"swap", 1 * mib},
	"lvm":           {"LVM2_member", 0},
	"gpt":           {"GPT", 4 * mib},
	"mbr":           {"MBR", (2048 + 2048) * 512},
	"luks1":         {"LUKS1", 0},
	"luks2":         {"LUKS2", 0},
}

func testDisk(t testing.TB, name string) []byte {
	t.Helper()
	return golden.Unxz(t, filepath.Join("testdata", name+".xz"))
}

func TestProbe(t *testing.T) {
	files, err := filepath.Glob("testdata/*.xz")
	if err != nil || len(files) != len(disks) {
		t.Fatalf("%d files in testdata, want %d (%v)", len(files), len(disks), err)
	}
	for name, want := range disks {
		t.Run(name, func(t *testing.T) {
			got, err := Probe(bytes.NewReader(testDisk(t, name)))
			if err != nil || got == nil {
				t.Fatalf("got %v, %v; want %v", got, err, want)
			}
			if *got != want {
				t.Errorf("got %v, want %v", *got, want)
			}
		})
	}
}

func TestProbeKnowsNothing(t *testing.T) {
	random := make([]byte, headBytes)
	rand.NewChaCha8([32]byte{1}).Read(random)
	bootCode := make([]byte, 512) // a boot signature alone is no partition table
	copy(bootCode[510:], bootSignature)
	for name, disk := range map[string][]byte{
		"empty":     {},
		"zeros":     make([]byte, headBytes),
		"random":    random,
		"boot code": bootCode,
		"text":      []byte(strings.Repeat("no file system here. ", 5000)),
	} {
		if got, err := Probe(bytes.NewReader(disk)); got != nil || err != nil {
			t.Errorf("%s: got %v, %v; want nil, nil", name, got, err)
		}
	}
}

func TestProbeOfImpossibleSizes(t *testing.T) {
	// Ones over each number near a superblock: sizes must not come out negative.
	for name := range disks {
		disk := testDisk(t, name)
		for _, superblock := range []int{0, 512, 1024, 32 << 10, 64 << 10} {
			for off := superblock; off+8 <= min(superblock+512, len(disk)); off += 4 {
				number := disk[off : off+8]
				before := bytes.Clone(number)
				copy(number, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF")
				got, err := Probe(bytes.NewReader(disk))
				if err != nil || got != nil && got.Size < 0 {
					t.Errorf("%s with ones at %d: got %v, %v", name, off, got, err)
				}
				copy(number, before)
			}
		}
	}
}

func TestProbePartitions(t *testing.T) {
	// The third entry, which has one of everything, is changed.
	for _, test := range []struct {
		name   string
		offset int
		bytes  string
		want   int64 // size, or 0: no partition table
	}{
		{name: "good", want: 300 * 512},
		{name: "bootable", offset: 0, bytes: "\x80", want: 300 * 512},
		{name: "status", offset: 0, bytes: "\x01"},
		{name: "not in use", offset: 4, bytes: "\x00", want: 30 * 512},
		{name: "start 0", offset: 8, bytes: "\x00"},
		{name: "no sectors", offset: 12, bytes: "\x00\x00"},
		{name: "last sector there is", offset: 8, bytes: "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", want: (1<<33 - 2) * 512},
	} {
		table := make([]byte, 512)
		copy(table[446:], "\x00   \x83   \x0A\x00\x00\x00\x0A\x00\x00\x00")
		copy(table[446+3*16:], "\x00   \x83   \x14\x00\x00\x00\x0A\x00\x00\x00")
		third := table[446+2*16:]
		copy(third, "\x00   \x83   \x2C\x00\x00\x00\x00\x01\x00\x00")
		copy(third[test.offset:], test.bytes)
		copy(table[510:], bootSignature)
		got, err := Probe(bytes.NewReader(table))
		var size int64
		if got != nil {
			size = got.Size
		}
		if err != nil || size != test.want || got != nil && got.Name != "MBR" {
			t.Errorf("%s: got %v, %v; want %d bytes", test.name, got, err, test.want)
		}
	}
}

// TestAllSignatures: a partition table that is written over a file system.
func TestAllSignatures(t *testing.T) {
	disk := testDisk(t, "ext4")
	copy(disk, testDisk(t, "mbr")[:512])
	all, err := All(bytes.NewReader(disk))
	if want := []Found{disks["ext4"], disks["mbr"]}; err != nil || !slices.Equal(all, want) {
		t.Errorf("got %v (%v), want %v", all, err, want)
	}
	if none, err := All(bytes.NewReader(nil)); len(none) > 0 || err != nil {
		t.Errorf("an empty disk: got %v (%v)", none, err)
	}
}

func TestProduct(t *testing.T) {
	for _, test := range []struct {
		a, b uint64
		want int64
	}{
		{1 << 31, 1<<32 - 1, 1<<63 - 1<<31},
		{1 << 31, 1 << 32, 0},
		{3, 6148914691236517206, 0}, // 2^64 + 2
	} {
		if got := product(test.a, test.b); got != test.want {
			t.Errorf("product(%d, %d) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

// A block is at most 64 KiB; a size counted in larger ones is none.
func TestProbeOfImpossibleBlocks(t *testing.T) {
	for log, want := range map[byte]int64{6: 4096 << 16, 7: 0, 50: 0} {
		disk := testDisk(t, "ext2") // 4 MiB in blocks of 1 KiB
		disk[1024+0x18] = log
		if got, err := Probe(bytes.NewReader(disk)); err != nil || got == nil || got.Size != want {
			t.Errorf("blocks of 1 KiB << %d: got %v, %v; want %d bytes", log, got, err, want)
		}
	}
}

type brokenDisk struct{}

var errBroken = errors.New("broken")

func (brokenDisk) ReadAt([]byte, int64) (int, error) { return 0, errBroken }

func TestProbeReportsReadErrors(t *testing.T) {
	if got, err := Probe(brokenDisk{}); got != nil || !errors.Is(err, errBroken) {
		t.Errorf("got %v, %v; want nil, %v", got, err, errBroken)
	}
}

func FuzzProbe(f *testing.F) {
	for name := range disks {
		f.Add(testDisk(f, name))
	}
	f.Fuzz(func(t *testing.T, disk []byte) {
		got, err := Probe(bytes.NewReader(disk))
		if err != nil || got != nil && (got.Name == "" || got.Size < 0) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
