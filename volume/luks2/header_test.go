package luks2

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"serpcrypt/internal/golden"
	"serpcrypt/volume/luks"
)

func TestGoldenHeaders(t *testing.T) {
	for _, image := range golden.LUKS2(t) {
		t.Run(image.Name, func(t *testing.T) {
			b := image.Unpack(t)
			found := read(t, b)
			h := found.Header
			for i, c := range found.Copies {
				if c.Fault != nil || c.Stale || c.SeqID != h.SeqID || c.Offset != int64(i)*h.Size {
					t.Errorf("copy %d: %+v", i, c)
				}
			}
			size := int64(len(b))
			if faults := h.Faults(size, size); len(faults) != 0 {
				t.Errorf("faults: %v", faults)
			}
			if err := h.Validate(size, size); err != nil {
				t.Errorf("not valid: %v", err)
			}
			offset, payload, err := h.Payload(size, false)
			if offset != image.PayloadOffset || payload != image.PayloadSize || err != nil {
				t.Errorf("payload at %d, %d bytes, %v; want %d, %d", offset, payload, err, image.PayloadOffset, image.PayloadSize)
			}
			if got := h.Segments[0].SectorSize; got != image.SectorSize {
				t.Errorf("sectors of %d bytes, want %d", got, image.SectorSize)
			}
			for slot := range MaxSlots {
				_, used := image.Passphrases[slot]
				if got := h.Keyslots[slot] != nil; got != used {
					t.Errorf("slot %d in use: %v, want %v", slot, got, used)
				}
			}
			salt := [SaltSize]byte(b[offSalt:])
			again, err := h.MarshalCopy(0, salt)
			if err != nil {
				t.Fatal(err)
			}
			// The order of members is ours: only what the text says is the same.
			if got, want := again[:offChecksum], b[:offChecksum]; !bytes.Equal(got, want) {
				t.Errorf("marshalled to\n%x\nwant\n%x", got, want)
			}
			sameJSON(t, textOf(again[HeaderSize:]), textOf(b[HeaderSize:h.Size]))
			reparsed, err := ParseCopy(again, 0)
			if err != nil {
				t.Fatal(err)
			}
			reparsed.places, h.places = nil, nil
			if !reflect.DeepEqual(reparsed, h) {
				t.Errorf("got %+v, want %+v", reparsed, h)
			}
		})
	}
}

func TestGoldenSlots(t *testing.T) {
	h := read(t, golden.Named(t, "l2-slots").Unpack(t)).Header
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"size", h.Size, int64(65536)},
		{"seqid", h.SeqID, uint64(10)},
		{"label", h.Label, "golden"},
		{"subsystem", h.Subsystem, "rig"},
		{"UUID", h.UUID, "c6134a82-d7c1-495e-8a5d-d9ee62e9a9bb"},
		{"checksum", h.ChecksumHash, "sha256"},
		{"json_size", h.Config.JSONSize, int64(61440)},
		{"keyslots_size", h.Config.KeyslotsSize, int64(1572864)},
		{"KDF of slot 0", []any{h.Keyslots[0].KDF.Type, h.Keyslots[0].KDF.Time, h.Keyslots[0].KDF.Memory, h.Keyslots[0].KDF.CPUs}, []any{"argon2id", 5, 4096, 1}},
		{"area of slot 1", h.Keyslots[1].Area, Area{"raw", 389120, 258048, "aes-xts-plain64", 32, nil}},
		{"AF of slot 1", h.Keyslots[1].AF, AF{"luks1", 4000, "sha512", nil}},
		{"KDF of slot 1", []any{h.Keyslots[1].KDF.Type, h.Keyslots[1].KDF.Hash, h.Keyslots[1].KDF.Iterations, len(h.Keyslots[1].KDF.Salt)}, []any{"pbkdf2", "sha512", 1001, 32}},
		{"priority of slot 3", h.Keyslots[3].Priority, (*int)(nil)},
		{"priority of slot 4", *h.Keyslots[4].Priority, PriorityIgnore},
		{"key slots of the digest", h.Digests[0].Keyslots, []int{0, 1, 3, 4}},
		{"segments of the digest", h.Digests[0].Segments, []int{0}},
		{"token", []any{h.Tokens[3].Type, h.Tokens[3].Keyslots, h.Tokens[3].Unknown[0].Name, string(h.Tokens[3].Unknown[0].Value)}, []any{"rig-test", []int{1}, "note", `"golden"`}},
		{"size of the segment", h.Segments[0].Size, int64(DynamicSize)},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestOffsets proves that each named offset is that of its field.
func TestOffsets(t *testing.T) {
	f := fields{Version: 0x0102, Size: 0x0304, SeqID: 0x0506, Offset: 0x0708}
	f.Magic[0], f.Label[0], f.ChecksumAlg[0], f.Salt[0], f.UUID[0], f.Subsystem[0], f.Checksum[0] = 1, 2, 3, 4, 5, 6, 7
	b, err := binary.Append(nil, binary.BigEndian, &f)
	if err != nil || len(b) != HeaderSize {
		t.Fatalf("%d bytes, %v; want %d", len(b), err, HeaderSize)
	}
	want := make([]byte, HeaderSize)
	want[offMagic], want[offLabel], want[offChecksumAlg], want[offSalt], want[offUUID], want[offSubsystem], want[offChecksum] = 1, 2, 3, 4, 5, 6, 7
	binary.BigEndian.PutUint16(want[offVersion:], 0x0102)
	binary.BigEndian.PutUint64(want[offSize:], 0x0304)
	binary.BigEndian.PutUint64(want[offSeqID:], 0x0506)
	binary.BigEndian.PutUint64(want[offOffset:], 0x0708)
	if !bytes.Equal(b, want) {
		t.Errorf("got\n%x\nwant\n%x", b[:512], want[:512])
	}
}

func TestRoundTrip(t *testing.T) {
	h, _ := exampleHeader(t)
	h.SeqID = 77
	ignored := PriorityIgnore
	h.Keyslots[0].Priority = &ignored
	h.Config.Flags = []string{"allow-discards", "later"}
	h.Config.Requirements.Mandatory = []string{}
	for _, offset := range []int64{0, h.Size} {
		first, err := h.MarshalCopy(offset, [SaltSize]byte{9})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseCopy(first, offset)
		if err != nil {
			t.Fatal(err)
		}
		second, err := got.MarshalCopy(offset, [SaltSize]byte{9})
		if err != nil || !bytes.Equal(second, first) {
			t.Errorf("not the same bytes the second time, %v", err)
		}
		got.places = nil
		if !reflect.DeepEqual(got, h) {
			t.Errorf("got %+v\nwant %+v", got, h)
		}
	}
}

func TestParseCopyErrors(t *testing.T) {
	h, _ := exampleHeader(t)
	good := map[int64][]byte{}
	for _, offset := range []int64{0, h.Size} {
		b, err := h.MarshalCopy(offset, [SaltSize]byte{})
		if err != nil {
			t.Fatal(err)
		}
		good[offset] = b
	}
	put64 := func(at int, n uint64) func([]byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint64(b[at:], n); return b }
	}
	put := func(at int, text string) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], text); return b }
	}
	for _, c := range []struct {
		name   string
		edit   func(b []byte) []byte
		summed bool // the checksum is made right
		field  string
		at     int64 // of the field in the copy
		reason string
	}{
		{"empty", func([]byte) []byte { return nil }, false, "magic", 0, "only 0"},
		{"4095 bytes", func(b []byte) []byte { return b[:4095] }, false, "magic", 0, "only 4095"},
		{"zeros", func(b []byte) []byte { clear(b); return b }, false, "magic", 0, "must be"},
		{"magic", put(0, "LUKZ"), true, "magic", 0, "must be"},
		{"version 3", put(6, "\x00\x03"), true, "version", 6, "version 3"},
		{"version 257", put(6, "\x01\x02"), true, "version", 6, "version 258"},
		{"hdr_size 0", put64(8, 0), true, "hdr_size", 8, "power of two"},
		{"hdr_size 8 KiB", put64(8, 8192), false, "hdr_size", 8, "power of two"},
		{"hdr_size not a power of two", put64(8, 24576), false, "hdr_size", 8, "power of two"},
		{"hdr_size 8 MiB", put64(8, 8<<20), false, "hdr_size", 8, "power of two"},
		{"hdr_size 8 EiB", put64(8, 1<<63), false, "hdr_size", 8, "9223372036854775808"},
		{"hdr_offset", put64(256, 512), true, "hdr_offset", 256, "512"},
		{"label of 48 bytes", put(24, strings.Repeat("l", 48)), true, "label", 24, "NUL"},
		{"subsystem of 48 bytes", put(208, strings.Repeat("s", 48)), true, "subsystem", 208, "NUL"},
		{"uuid of 40 bytes", put(168, strings.Repeat("a", 40)), true, "uuid", 168, "NUL"},
		{"csum_alg of 32 bytes", put(72, strings.Repeat("c", 32)), false, "csum_alg", 72, "NUL"},
		{"unknown csum_alg", put(72, "crc32c\x00"), false, "csum_alg", 72, `"crc32c"`},
		{"checksum off by one bit", func(b []byte) []byte { b[448] ^= 1; return b }, false, "csum", 448, "of the copy is"},
		{"checksum longer than the digest", func(b []byte) []byte { b[511] = 1; return b }, false, "csum", 448, ""},
		{"one bit of the salt", func(b []byte) []byte { b[104] ^= 0x80; return b }, false, "csum", 448, ""},
		{"one bit of the padding", func(b []byte) []byte { b[4095] ^= 1; return b }, false, "csum", 448, ""},
		{"one bit of the text", func(b []byte) []byte { b[4100] ^= 1; return b }, false, "csum", 448, ""},
		{"one bit of the last byte", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, false, "csum", 448, ""},
		{"text without NUL", func(b []byte) []byte {
			for i := HeaderSize; i < len(b); i++ {
				b[i] = '{'
			}
			return b
		}, true, "json", 4096, "NUL"},
		{"bytes behind the NUL", func(b []byte) []byte { b[len(b)-2] = 'x'; return b }, true, "json", 16382, "0x78"},
		{"no text", func(b []byte) []byte { clear(b[HeaderSize:]); return b }, true, "json", 4096, "{"},
	} {
		for offset, copy := range good {
			t.Run(c.name, func(t *testing.T) {
				b := c.edit(bytes.Clone(copy))
				if c.summed {
					sumUp(t, b, 0, int64(len(b)))
				}
				got, err := ParseCopy(b, offset)
				if got != nil {
					t.Fatalf("got a header")
				}
				wantFault(t, err, c.field, luks.NoSlot, offset+c.at, c.reason)
			})
		}
	}
	t.Run("cut short", func(t *testing.T) {
		_, err := ParseCopy(good[0][:len(good[0])-1], 0)
		wantFault(t, err, "hdr_size", luks.NoSlot, 8, "only 16383")
	})
	t.Run("secondary copy of another size", func(t *testing.T) {
		_, err := ParseCopy(good[h.Size], 2*h.Size)
		wantFault(t, err, "hdr_size", luks.NoSlot, 2*h.Size+8, "secondary copy is at byte 32768")
	})
	t.Run("primary copy at the secondary's place", func(t *testing.T) {
		_, err := ParseCopy(good[0], h.Size)
		wantFault(t, err, "magic", luks.NoSlot, h.Size, "SKUL")
	})
}

func TestMarshalCopyErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(h *Header)
		field string
		at    int64
	}{
		{"label of 48 bytes", func(h *Header) { h.Label = strings.Repeat("l", 48) }, "label", 24},
		{"NUL in the label", func(h *Header) { h.Label = "a\x00b" }, "label", 24},
		{"subsystem of 48 bytes", func(h *Header) { h.Subsystem = strings.Repeat("l", 48) }, "subsystem", 208},
		{"uuid of 40 bytes", func(h *Header) { h.UUID = strings.Repeat("l", 40) }, "uuid", 168},
		{"unknown csum_alg", func(h *Header) { h.ChecksumHash = "nosuch" }, "csum_alg", 72},
		{"text too long", func(h *Header) { h.Config.Flags = []string{strings.Repeat("f", 12288)} }, "json", 4096},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := exampleHeader(t)
			c.edit(h)
			b, err := h.MarshalCopy(0, [SaltSize]byte{})
			if b != nil {
				t.Error("got bytes")
			}
			wantFault(t, err, c.field, luks.NoSlot, c.at, "")
		})
	}
}

// TestTextFillsTheCopy: one byte, the NUL, is left.
func TestTextFillsTheCopy(t *testing.T) {
	h, _ := exampleHeader(t)
	h.Config.Flags = []string{""}
	room := int(h.Size-HeaderSize-1) - len(writeJSON(&h.Metadata))
	h.Config.Flags[0] = strings.Repeat("f", room)
	b, err := h.MarshalCopy(0, [SaltSize]byte{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseCopy(b, 0); err != nil {
		t.Error(err)
	}
	h.Config.Flags[0] += "f"
	_, err = h.MarshalCopy(0, [SaltSize]byte{})
	wantFault(t, err, "json", luks.NoSlot, 4096, "room for 12287")
}
