package luks2

import (
	"errors"
	"testing"
)

// TestAreaSize: as cryptsetup makes them.
func TestAreaSize(t *testing.T) {
	for keyBytes, want := range map[int]int64{64: 258048, 32: 131072, 96: 385024, 16: 65536, 1: 4096} {
		if got := AreaSize(keyBytes); got != want {
			t.Errorf("key of %d bytes: got %d, want %d", keyBytes, got, want)
		}
	}
}

func TestFreeArea(t *testing.T) {
	const begin, size = 32768, 8192
	for _, c := range []struct {
		name  string
		taken [][2]int64 // offset and size
		want  int64      // 0: no room
		count int
	}{
		{"empty", nil, begin, 10},
		{"behind the last", [][2]int64{{begin + size, size}, {begin, size}}, begin + 2*size, 8},
		{"before the first", [][2]int64{{begin + size, size}}, begin, 9},
		{"between two", [][2]int64{{begin, size}, {begin + 2*size, size}}, begin + size, 8},
		{"the gap is too small", [][2]int64{{begin, size}, {begin + 2*size - 4096, size}}, begin + 3*size - 4096, 7},
		{"not aligned", [][2]int64{{begin, 100}}, begin + 4096, 9},
		{"one inside another", [][2]int64{{begin, 3 * size}, {begin + size, 4096}}, begin + 3*size, 7},
		{"the last place", [][2]int64{{begin, 9 * size}}, begin + 9*size, 1},
		{"almost full", [][2]int64{{begin, 9*size + 4096}}, 0, 0},
		{"full", [][2]int64{{begin, 10 * size}}, 0, 0},
	} {
		h := &Header{Size: begin / 2, Metadata: Metadata{Keyslots: map[int]*Keyslot{}, Config: Config{KeyslotsSize: 10 * size}}}
		for i, area := range c.taken {
			h.Keyslots[i] = &Keyslot{Type: "any", Area: Area{Offset: area[0], Size: area[1]}}
		}
		got, err := h.FreeArea(size)
		if got != c.want || (c.want == 0) != errors.Is(err, ErrNoSpace) {
			t.Errorf("%s: got %d, want %d (%v)", c.name, got, c.want, err)
		}
		if n := h.FreeAreas(size); n != c.count {
			t.Errorf("%s: %d areas are free, want %d", c.name, n, c.count)
		}
	}
}
