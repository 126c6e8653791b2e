package af

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"serpcrypt/internal/golden"
)

// momentGenerating returns the mean of exp(theta*pairs) over all sectors in
// which no byte value is there maxCount times or more, times their share. The
// counts of 256 values in a sector are independent Poisson variables of mean 2
// on the condition that their sum is 512.
func momentGenerating(theta float64, maxCount int) float64 {
	poisson := func(n int, mean float64) float64 {
		logFactorial, _ := math.Lgamma(float64(n + 1))
		return math.Exp(float64(n)*math.Log(mean) - mean - logFactorial)
	}
	sums := make([]float64, spotSize+1) // by the sum of the counts of as many values
	for count := range maxCount {
		sums[count] = poisson(count, 2) * math.Exp(theta*float64(count*(count-1)/2))
	}
	for values := 1; values < 256; values *= 2 {
		doubled := make([]float64, len(sums))
		for i, a := range sums {
			for j, b := range sums[:len(sums)-i] {
				doubled[i+j] += a * b
			}
		}
		sums = doubled
	}
	return sums[spotSize] / poisson(spotSize, spotSize)
}

// TestFalseAlarms computes bounds for the share of random sectors that are
// taken for something else.
func TestFalseAlarms(t *testing.T) {
	const maxCount = 24
	if got := momentGenerating(0, maxCount); math.Abs(got-1) > 1e-9 {
		t.Fatalf("the probabilities add up to %v", got)
	}
	// A value that is there maxCount times: any of the 256, at any of so many
	// places.
	ways, _ := math.Lgamma(spotSize + 1)
	inside, _ := math.Lgamma(maxCount + 1)
	outside, _ := math.Lgamma(spotSize - maxCount + 1)
	repeated := 256 * math.Exp(ways-inside-outside-maxCount*math.Log(256))

	// Chernoff: P(pairs >= n) <= M(theta) exp(-theta n) for all theta > 0, and
	// likewise below with theta < 0.
	bound := func(pairs int, sign float64) float64 {
		least := 1.0
		for theta := 0.02; theta < 0.6; theta += 0.02 {
			// Beyond what a float64 holds it is no number.
			if p := momentGenerating(sign*theta, maxCount) * math.Exp(-sign*theta*float64(pairs)); p < least {
				least = p
			}
		}
		return least
	}
	few, many := bound(fewestPairs-1, -1)+repeated, bound(mostPairs+1, 1)
	table := math.Exp2(-44)
	t.Logf("random sectors with too few pairs: %.2g, too many: %.2g, many times the same byte: %.2g, a partition table: %.2g", few, many, repeated, table)
	sector := few + many + repeated
	if sector >= 7e-13 {
		t.Errorf("%.3g of random sectors have too few or too many pairs, want less than 7e-13", sector)
	}
	if area := (sector + table) * (256<<10/spotSize + 1); area >= 4e-10 {
		t.Errorf("%.3g of random areas are taken for something else, want less than 4e-10", area)
	}
}

func randomArea(seed byte, n int) []byte {
	area := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(area)
	return area
}

// TestRandomIsRandom looks at much from a good generator, and whether the count
// of pairs is distributed as it should be.
func TestRandomIsRandom(t *testing.T) {
	const areas, areaSize = 200, 256 << 10
	random := rand.NewChaCha8([32]byte{7})
	area := make([]byte, areaSize)
	var n, sum, squares float64
	for range areas {
		random.Read(area)
		if spots := NotRandom(area); len(spots) > 0 {
			t.Errorf("found %v", spots)
		}
		for sector := range slices.Chunk(area, spotSize) {
			pairs := float64(equalPairs(sector))
			n, sum, squares = n+1, sum+pairs, squares+pairs*pairs
		}
	}
	mean, deviation := sum/n, math.Sqrt(squares/n-sum/n*sum/n)
	wantMean, wantDeviation := 512*511/2/256., math.Sqrt(512*511/2/256.*255/256)
	if margin := 5 * wantDeviation / math.Sqrt(n); math.Abs(mean-wantMean) > margin || math.Abs(deviation-wantDeviation) > margin {
		t.Errorf("%v pairs with a deviation of %v, want %v and %v", mean, deviation, wantMean, wantDeviation)
	}
}

// TestGoldenAreas looks at key slots that cryptsetup and qemu-img have written.
func TestGoldenAreas(t *testing.T) {
	slots := 0
	for _, image := range golden.Small(t) {
		content := image.Unpack(t)
		if binary.BigEndian.Uint16(content[6:]) != 1 {
			continue // LUKS1: named offsets are those of its specification, table 1
		}
		const offKeyBytes, offSlots, slotSize, enabled = 108, 208, 48, 0x00ac71f3
		keyBytes := int(binary.BigEndian.Uint32(content[offKeyBytes:]))
		for slot := range 8 {
			fields := content[offSlots+slot*slotSize:]
			if binary.BigEndian.Uint32(fields) != enabled {
				continue
			}
			area := content[spotSize*int(binary.BigEndian.Uint32(fields[40:])):][:4000*keyBytes]
			if spots := NotRandom(area); len(spots) > 0 {
				t.Errorf("%s, slot %d: found %v", image.Name, slot, spots)
			}
			slots++
		}
	}
	if slots < 7 {
		t.Errorf("%d slots, want at least 7", slots)
	}
}

// withMagic is a sector of zeros but for some bytes.
func withMagic(offset int, magic string) []byte {
	sector := make([]byte, spotSize)
	copy(sector[offset:], magic)
	return sector
}

// damage is what may lie in the place of a key slot, in one sector or more.
var damage = []struct {
	name, what string
	content    []byte
}{
	{"zeros", "zeros", make([]byte, spotSize)},
	{"many zeros", "zeros", make([]byte, 20*spotSize)},
	{"ones", "0xFF bytes", bytes.Repeat([]byte{0xff}, spotSize)},
	{"a byte", "one byte repeated", bytes.Repeat([]byte{0xa5}, spotSize)},
	{"English", "text", []byte(strings.Repeat("It was the best of times, it was the worst of times, ", 10)[:spotSize])},
	{"UTF-8", "text", []byte(strings.Repeat("größer, höher, weiter: ", 40)[:spotSize])},
	{"base64", "text", base64Lines()},
	{"log with an end", "text", append(bytes.Repeat([]byte("Jan  1 00:00:00 host kernel: ok\n"), 10), make([]byte, 192)...)},
	{"MBR", "a partition table", withMagic(446, "\x80\x20\x21\x00\x83\xfe\xff\xff\x00\x08\x00\x00\x00\xf8\xff\x01"+strings.Repeat("\x00", 48)+"\x55\xaa")},
	{"FAT boot sector", "a boot sector", append(withMagic(0, "\xeb\x58\x90mkfs.fat\x00\x02\x08\x20\x00\x02")[:510], 0x55, 0xaa)},
	{"GPT", "a GUID partition table", withMagic(0, "EFI PART\x00\x00\x01\x00\x5c\x00\x00\x00")},
	{"LUKS", "a LUKS header", withMagic(0, "LUKS\xba\xbe\x00\x01serpent")},
	{"ext4", "an ext file system", withMagic(0, "\x00\x20\x00\x00\x00\x80\x00\x00"+strings.Repeat("\x00", 48)+"\x53\xef\x01\x00")},
	{"XFS", "an XFS file system", withMagic(0, "XFSB\x00\x00\x10\x00")},
	{"Btrfs", "a Btrfs file system", withMagic(0x40, "_BHRfS_M\x05")},
	{"ISO 9660", "an ISO 9660 file system", withMagic(0, "\x01CD001\x01\x00LINUX                           ")},
	{"swap", "swap space", withMagic(502, "SWAPSPACE2")},
	{"numbers", "a pattern", numbers()},
	{"all bytes in turn", "a pattern", ramp()},
}

func base64Lines() (lines []byte) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i, b := range randomArea(3, spotSize) {
		if lines = append(lines, digits[b%64]); i%65 == 64 {
			lines[i] = '\n'
		}
	}
	return lines
}

func numbers() (b []byte) {
	for i := range uint64(spotSize / 8) {
		b = binary.LittleEndian.AppendUint64(b, 1000+i)
	}
	return b
}

func ramp() (b []byte) {
	for i := range spotSize {
		b = append(b, byte(i))
	}
	return b
}

// TestDamage finds each kind of damage in any sector of a random area, and
// nothing else in it.
func TestDamage(t *testing.T) {
	for _, keyBytes := range []int{16, 24, 64} {
		area := randomArea(1, 4000*keyBytes)
		for _, d := range damage {
			t.Run(fmt.Sprintf("key=%d,%s", keyBytes, d.name), func(t *testing.T) {
				last := (len(area) - len(d.content)) / spotSize
				for _, sector := range []int{0, 1, 37, last - 1, last} {
					at := sector * spotSize
					damaged := bytes.Clone(area)
					copy(damaged[at:], d.content)
					want := []Spot{{int64(at), int64(len(d.content)), d.what}}
					if got := NotRandom(damaged); !slices.Equal(got, want) {
						t.Errorf("sector %d: got %v, want %v", sector, got, want)
					}
				}
			})
		}
	}
}

// TestPartOfASector writes over less than a sector of random bytes.
func TestPartOfASector(t *testing.T) {
	table := "\x80\x20\x21\x00\x83\xfe\xff\xff\x00\x08\x00\x00\x00\xf8\xff\x01"
	for _, c := range []struct {
		name   string
		offset int
		bytes  string
	}{
		{"32 zeros", 100, strings.Repeat("\x00", 32)},
		{"160 bytes of text", 0, strings.Repeat("the quick brown fox ", 8)},
		{"an MBR's table", 446, table + strings.Repeat("\x00", 48) + "\x55\xaa"},
		{"a table of four entries without zeros", 446, strings.Repeat("\x00\x17\x2a\x35\x83\xfe\x4f\x71\x93\xb8\x1d\x63\xc4\xf8\x9f\x21", 4) + "\x55\xaa"},
	} {
		found := 0
		const areas = 50
		for seed := range byte(areas) {
			area := randomArea(seed, 8*spotSize)
			copy(area[3*spotSize+c.offset:], c.bytes)
			spots := NotRandom(area)
			if len(spots) == 1 && spots[0].Offset == 3*spotSize && spots[0].Size == spotSize {
				found++
			} else if len(spots) > 0 {
				t.Errorf("%s: got %v", c.name, spots)
			}
		}
		if found != areas {
			t.Errorf("%s: found in %d of %d sectors", c.name, found, areas)
		}
	}
}

func TestSpots(t *testing.T) {
	area := randomArea(2, 10*spotSize+100)
	clear(area[2*spotSize : 4*spotSize])
	copy(area[4*spotSize:], ramp())
	clear(area[6*spotSize : 7*spotSize])
	clear(area[10*spotSize:])
	want := []Spot{
		{2 * spotSize, 2 * spotSize, "zeros"},
		{4 * spotSize, spotSize, "a pattern"},
		{6 * spotSize, spotSize, "zeros"},
		{10 * spotSize, 100, "zeros"},
	}
	if got := NotRandom(area); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, n := range []int{0, 1, spotSize - 1} {
		if got := NotRandom(make([]byte, n)); got != nil {
			t.Errorf("%d zeros: got %v, want nothing", n, got)
		}
	}
}
