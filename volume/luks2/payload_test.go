package luks2

import (
	"testing"

	"serpcrypt/volume/luks"
)

// TestStoreSizes: what lies in a store has to fit it.
func TestStoreSizes(t *testing.T) {
	h, _ := exampleHeader(t)
	begin := h.Segments[0].Offset
	for _, c := range []struct {
		name                 string
		headerSize, dataSize int64
		field                string // "" if all is well
		slot                 int
	}{
		{"one sector", begin + 4096, begin + 4096, "", 0},
		{"size is not a multiple of 4096-byte sectors", begin + 8192 + 512, begin + 8192 + 512, "segments.0.size", -1},
		{"part of a 512-byte sector at the end", begin + 8192 + 511, begin + 8192 + 511, "", 0},
		{"a header backup", begin, begin, "", 0},
		{"end in front of the data", begin - 512, begin - 512, "segments.0.offset", -1},
		{"data in an unknown store", begin, luks.UnknownSize, "", 0},
		{"data in another store", 32768 + 258048, begin + 4096, "", 0},
		{"area of slot 0 cut short", 32768 + 258048 - 1, begin + 4096, "keyslots.0.area.size", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults := h.Faults(c.headerSize, c.dataSize)
			if c.field == "" {
				if len(faults) != 0 {
					t.Errorf("got %v", faults)
				}
				return
			}
			if len(faults) != 1 {
				t.Fatalf("got %v", faults)
			}
			wantFault(t, faults[0], c.field, c.slot, HeaderSize, "") // a new header has no place of its own
		})
	}
}

func TestPayload(t *testing.T) {
	h, _ := exampleHeader(t)
	begin := h.Segments[0].Offset
	for _, c := range []struct {
		name                string
		size, begin         int64 // of the segment
		dataSize            int64
		detached            bool
		wantOffset, wantLen int64
		field               string
	}{
		{"dynamic", DynamicSize, begin, begin + 8192, false, begin, 8192, ""},
		{"dynamic, part of a 512-byte sector", DynamicSize, begin, begin + 8192 + 511, false, begin, 8192, ""},
		{"dynamic, part of a 4096-byte sector", DynamicSize, begin, begin + 8192 + 512, false, 0, 0, "segments.0.size"},
		{"fixed", 4096, begin, begin + 8192, false, begin, 4096, ""},
		{"fixed, past the end", 12288, begin, begin + 8192, false, 0, 0, "segments.0.size"},
		{"no sector", DynamicSize, begin, begin + 4095, false, 0, 0, "segments.0.offset"},
		{"end before the data", DynamicSize, begin, 0, false, 0, 0, "segments.0.offset"},
		{"detached", DynamicSize, 0, 4096, true, 0, 4096, ""},
		{"detached, data not at the start", DynamicSize, begin, begin + 4096, true, begin, 4096, ""},
		{"detached header used as attached", DynamicSize, 0, 1 << 20, false, 0, 0, "segments.0.offset"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.Segments[0].Size, h.Segments[0].Offset = c.size, c.begin
			offset, size, err := h.Payload(c.dataSize, c.detached)
			if c.field != "" {
				wantFault(t, err, c.field, luks.NoSlot, -1, "")
			} else if err != nil || offset != c.wantOffset || size != c.wantLen {
				t.Errorf("got %d, %d, %v; want %d, %d", offset, size, err, c.wantOffset, c.wantLen)
			}
		})
	}
}
