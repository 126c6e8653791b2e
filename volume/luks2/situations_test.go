package luks2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"serpcrypt/volume/luks"
)

// use does what opening a container begins with. It only reads.
func use(b []byte) (*Found, error) {
	size := int64(len(b))
	found, err := Read(bytes.NewReader(b), size)
	if err != nil {
		return found, err
	}
	if err := found.Header.Validate(size, size); err != nil {
		return found, err
	}
	_, _, err = found.Header.Payload(size, false)
	return found, err
}

// TestDamagedCopies: the container opens if a copy is left, and of the other it is
// said what is wrong.
func TestDamagedCopies(t *testing.T) {
	h, size := exampleHeader(t)
	second := h.Size
	zero := func(offset int64) func(b []byte) { return func(b []byte) { clear(b[offset : offset+h.Size]) } }
	flip := func(at int64) func(b []byte) { return func(b []byte) { b[at] ^= 1 } }
	put64 := func(at int64, n uint64) func(b []byte) {
		return func(b []byte) { binary.BigEndian.PutUint64(b[at:], n) }
	}
	resum := func(b []byte) {
		for _, offset := range []int64{0, second} {
			sumUp(t, b, offset, h.Size)
		}
	}
	both := func(edits ...func(b []byte)) func(b []byte) {
		return func(b []byte) {
			for _, edit := range edits {
				edit(b)
			}
		}
	}
	for _, c := range []struct {
		name   string
		edit   func(b []byte)
		seqID  uint64 // of the header that counts; 0: none is good, and the error is that of field and offset
		copy   int    // that has the fault
		field  string
		offset int64
		reason string
		stale  int // the copy that is; -1: none
	}{
		{"nothing", func([]byte) {}, 5, -1, "", 0, "", -1},
		{"primary zeroed", zero(0), 5, 0, "magic", 0, "must be", -1},
		{"secondary zeroed", zero(second), 5, 1, "magic", second, "must be", -1},
		{"both zeroed", both(zero(0), zero(second)), 0, 0, "magic", 0, "must be", -1},
		{"primary filled with ones", func(b []byte) { copy(b, bytes.Repeat([]byte{0xFF}, 4096)) }, 5, 0, "magic", 0, "must be", -1},
		{"sequence numbers apart by 1, primary newer", both(put64(16, 6), resum), 6, -1, "", 0, "", 1},
		{"sequence numbers apart by 1, secondary newer", both(put64(second+16, 6), resum), 6, -1, "", 0, "", 0},
		{"sequence numbers equal, other label", both(func(b []byte) { b[second+24] = 'X' }, resum), 5, 1, "seqid", second + 16, "contents differ", -1},
		{"sequence numbers equal, other text", both(func(b []byte) {
			copy(b[second+HeaderSize:], bytes.Replace(b[HeaderSize:second], []byte("1000"), []byte("1001"), 1))
		}, resum), 5, 1, "seqid", second + 16, "contents differ", -1},
		{"checksum of the primary off by one bit", flip(448 + 31), 5, 0, "csum", 448, "that of the copy", -1},
		{"checksum of the secondary off by one bit", flip(second + 448), 5, 1, "csum", second + 448, "that of the copy", -1},
		{"both checksums off by one bit", both(flip(448), flip(second+448)), 0, 0, "csum", 448, "that of the copy", -1},
		{"one bit in the last byte of both", both(flip(second-1), flip(2*second-1)), 0, 0, "csum", 448, "that of the copy", -1},
		{"hdr_size of the primary not a power of two", put64(8, 16385), 5, 0, "hdr_size", 8, "16385", -1},
		{"hdr_size of the primary 8 EiB", put64(8, 1<<63), 5, 0, "hdr_size", 8, "9223372036854775808", -1},
		{"hdr_size of both 8 EiB", both(put64(8, 1<<63), put64(second+8, 1<<63)), 0, 0, "hdr_size", 8, "9223372036854775808", -1},
		{"hdr_size of the secondary another", both(put64(second+8, 1<<15), resum), 5, 1, "hdr_size", second + 8, "32768", -1},
		{"version of the primary", flip(7), 5, 0, "version", 6, "3", -1},
		{"a LUKS1 header before an old secondary copy", put64(0, 0x4C554B53BABE0001), 0, 0, "version", 6, "LUKS1", -1},
		{"primary zeroed, secondary with a bad checksum", both(zero(0), flip(second+448)), 0, 1, "csum", second + 448, "that of the copy", -1},
		{"secondary of another program's making", both(func(b []byte) { copy(b[second+168:], "00000000") }, resum), 5, 1, "seqid", second + 16, "contents differ", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := container(t, h, size)
			b := s.Bytes()
			for _, offset := range []int64{0, second} {
				put64(offset+16, 5)(b)
			}
			resum(b)
			c.edit(b)
			found, err := use(b)
			if c.seqID == 0 {
				wantFault(t, err, c.field, luks.NoSlot, c.offset, c.reason)
			} else if err != nil || found.Header.SeqID != c.seqID {
				t.Fatalf("got %+v, %v; want sequence number %d", found.Header, err, c.seqID)
			}
			for i := range found.Copies {
				got := found.Copies[i]
				if i == c.copy {
					wantFault(t, got.Fault, c.field, luks.NoSlot, c.offset, c.reason)
				} else if got.Fault != nil && c.seqID != 0 {
					t.Errorf("copy %d: %v", i, got.Fault)
				}
				if got.Stale != (i == c.stale) {
					t.Errorf("copy %d stale: %v", i, got.Stale)
				}
			}
		})
	}
}

// TestSecondaryOfEverySize: without the primary it is looked for at all its places.
func TestSecondaryOfEverySize(t *testing.T) {
	tried := 0
	for size := int64(MinSize); size <= MaxSize; size *= 2 {
		tried++
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := container(t, newOfSize(t, size), 17<<20).Bytes()
			clear(b[:HeaderSize])
			found := read(t, b)
			if c := found.Copies[secondary]; found.Header.Size != size || c.Offset != size || c.Fault != nil || c.Stale {
				t.Errorf("got %+v, copy %+v", found.Header, c)
			}
		})
	}
	if tried != 9 {
		t.Errorf("%d sizes, want 9", tried)
	}
}

// TestSecondaryLeftOver: of two, the newer one is the container's.
func TestSecondaryLeftOver(t *testing.T) {
	h, size := exampleHeader(t)
	for _, old := range []struct {
		size  int64
		seqID uint64
	}{{32768, 1}, {32768, 9}} {
		b := container(t, h, size).Bytes()
		left := newOfSize(t, old.size)
		left.SeqID = old.seqID
		c, err := left.MarshalCopy(old.size, [SaltSize]byte{})
		if err != nil {
			t.Fatal(err)
		}
		copy(b[old.size:], c)
		clear(b[:h.Size])
		want := int64(MinSize)
		if old.seqID > h.SeqID {
			want = old.size
		}
		if got := read(t, b); got.Header.Size != want || got.Copies[secondary].Offset != want {
			t.Errorf("%+v: got %+v", old, got)
		}
	}
}

// TestSituations: what is wrong with a header of two good copies, by its text.
func TestSituations(t *testing.T) {
	h, size := exampleHeader(t)
	h.Keyslots[1] = &Keyslot{
		Type: KeyslotLUKS2, KeySize: 64, AF: h.Keyslots[0].AF,
		Area: Area{AreaRaw, 290816, 258048, "serpent-cbc-essiv:sha256", 32, nil},
		KDF:  KDF{Type: KDFArgon2id, Salt: []byte("0123456789abcdef"), Time: 4, Memory: 4 << 20, CPUs: 4},
	}
	h.Digests[0].Keyslots = []int{0, 1}
	for _, c := range []struct {
		name     string
		from, to string
		field    string // "" if nothing is wrong
		slot     int
		at       string // the value is this
		reason   string
		usable   bool
	}{
		{"nothing", `"0"`, `"0"`, "", 0, "", "", true},
		{"area behind the keyslots region", `"290816"`, `"2097152"`, "keyslots.1.area.offset", 1, `"2097152","size":"258048"`, "ends at byte 2097152", false},
		{"area across the end of the keyslots region", `"290816"`, `"1843200"`, "keyslots.1.area.offset", 1, `"1843200"`, "ends at byte 2097152", false},
		{"area right before the end of the keyslots region", `"290816"`, `"1839104"`, "", 0, "", "", true},
		{"area in the header", `"290816"`, `"28672"`, "keyslots.1.area.offset", 1, `"28672"`, "lies in the header", false},
		{"area at 2^63-1", `"290816"`, `"9223372036854775807"`, "keyslots.1.area.offset", 1, `"9223372036854775807"`, "", false},
		{"area of 2^63-1 bytes", `"290816","size":"258048"`, `"290816","size":"9223372036854775807"`, "keyslots.1.area.offset", 1, `"290816"`, "", false},
		{"area overlapping another", `"290816"`, `"286720"`, "keyslots.1.area.offset", 1, `"286720"`, "overlaps key slot 0", false},
		{"area of two key slots", `"290816"`, `"32768"`, "keyslots.1.area.offset", 1, `"32768","size":"258048","encryption":"serpent-cbc`, "overlaps key slot 0", false},
		{"area not aligned", `"290816"`, `"291328"`, "keyslots.1.area.offset", 1, `"291328"`, "multiple of 4096", true},
		{"area too small", `"290816","size":"258048"`, `"290816","size":"253952"`, "keyslots.1.area.size", 1, `"253952"`, "takes 258048", true},
		{"area of an unknown type", `"raw","offset":"290816"`, `"row","offset":"290816"`, "keyslots.1.area.type", 1, `"row"`, `"row"`, true},
		{"area of an unknown cipher", `"serpent-cbc-essiv:sha256"`, `"rot13-cbc-plain"`, "keyslots.1.area.encryption", 1, `"rot13-cbc-plain"`, `"rot13"`, true},
		{"area with a key that does not fit", `essiv:sha256","key_size":32`, `essiv:sha256","key_size":64`, "keyslots.1.area.key_size", 1, `64},"kdf":{"type":"argon2id"`, "512 bits", true},

		{"segment past the end", `"offset":"2097152"`, `"offset":"3149824"`, "segments.0.offset", -1, `"3149824"`, "ends at byte 3145728", false},
		{"segment at the end", `"offset":"2097152"`, `"offset":"3145728"`, "segments.0.offset", -1, `"3145728"`, "no sector", false},
		{"segment ends past the end", `"dynamic"`, `"1052672"`, "segments.0.size", -1, `"1052672"`, "take 1052672 bytes from byte 2097152", false},
		{"segment of 2^63-1 bytes", `"dynamic"`, `"9223372036854775807"`, "segments.0.size", -1, `"9223372036854775807"`, "whole sectors", false},
		{"segment up to the end", `"dynamic"`, `"1048576"`, "", 0, "", "", true},
		{"segment of no bytes", `"dynamic"`, `"0"`, "segments.0.size", -1, `"0","iv_tweak"`, "0 bytes", false},
		{"segment with a part of a sector", `"dynamic"`, `"512"`, "segments.0.size", -1, `"512"`, "whole sectors of 4096", false},
		{"segment in the keyslots area", `"offset":"2097152"`, `"offset":"1048576"`, "segments.0.offset", -1, `"1048576"`, "keyslots area ends at byte 2097152", false},
		{"segment not aligned", `"offset":"2097152"`, `"offset":"2097153"`, "segments.0.offset", -1, `"2097153"`, "multiple of 512", false},
		{"segment of a detached header", `"offset":"2097152"`, `"offset":"0"`, "segments.0.offset", -1, `"0","size"`, "detached", false},
		{"two segments", `"segments":{`, `"segments":{"1":{"type":"crypt","offset":"2097152","size":"4096","iv_tweak":"0","encryption":"serpent-ecb","sector_size":512},`, "segments.1", -1, `{"type":"crypt","offset":"2097152","size":"4096"`, "only one", false},
		{"no segments", `"segments":{"0":`, `"segments":{},"x":{"0":`, "segments", -1, `{},"x"`, "none", false},
		{"segment of an unknown type", `"type":"crypt"`, `"type":"linear"`, "segments.0.type", -1, `"linear"`, `"linear"`, false},
		{"segment of an unknown cipher", `"iv_tweak":"0","encryption":"serpent-xts-plain64"`, `"iv_tweak":"0","encryption":"rot13-xts-plain64"`, "segments.0.encryption", -1, `"rot13-xts-plain64"`, `"rot13"`, false},
		{"sectors of 8192 bytes", `"sector_size":4096`, `"sector_size":8192`, "segments.0.sector_size", -1, `8192`, "8192", false},
		{"sectors of 513 bytes", `"sector_size":4096`, `"sector_size":513`, "segments.0.sector_size", -1, `513`, "513", false},
		{"authenticated sectors", `"sector_size":4096`, `"sector_size":4096,"integrity":{"type":"hmac(sha256)"}`, "segments.0.integrity", -1, `{"type":"hmac`, "not supported", false},
		{"flags of a segment", `"sector_size":4096`, `"sector_size":4096,"flags":["in-reencryption"]`, "segments.0.flags", -1, `["in-re`, "in-reencryption", false},

		{"key slot without digest", `"keyslots":["0","1"]`, `"keyslots":["0"]`, "keyslots.1", 1, `{"type":"luks2","key_size":64,"af":{"type":"luks1","stripes":4000,"hash":"sha1"},"area":{"type":"raw","offset":"290816"`, "no digest", true},
		{"key slot with two digests", `"digests":{`, `"digests":{"1":{"type":"pbkdf2","keyslots":["1"],"segments":[],"hash":"sha1","iterations":1,"salt":"AAAA","digest":"paWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaU="},`, "keyslots.1", 1, `{"type":"luks2","key_size":64,"af":{"type":"luks1","stripes":4000,"hash":"sha1"},"area":{"type":"raw","offset":"290816"`, "0 and 1", true},
		{"digest naming no such slot", `"keyslots":["0","1"]`, `"keyslots":["0","1","5"]`, "digests.0.keyslots", -1, `["0","1","5"]`, "no key slot 5", false},
		{"digest naming no such segment", `"segments":["0"]`, `"segments":["0","1"]`, "digests.0.segments", -1, `["0","1"],"hash"`, "no segment 1", false},
		{"no digest for the segment", `"segments":["0"]`, `"segments":[]`, "digests", -1, `{"0":{"type":"pbkdf2","keyslots"`, "segment 0", false},
		{"two digests for the segment", `"digests":{`, `"digests":{"1":{"type":"pbkdf2","keyslots":[],"segments":["0"],"hash":"sha1","iterations":1,"salt":"AAAA","digest":"paWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaU="},`, "digests", -1, `{"1":{"type"`, "segment 0", false},
		{"unknown digest", `"type":"pbkdf2","keyslots"`, `"type":"crc32","keyslots"`, "digests.0.type", -1, `"crc32"`, `"crc32"`, false},
		{"unknown hash of the digest", `"hash":"sha256","iter`, `"hash":"nosuch","iter`, "digests.0.hash", -1, `"nosuch"`, `"nosuch"`, false},
		{"short digest", `"digest":"pa`, `"digest":"AAAA","old":"pa`, "digests.0.digest", -1, `"AAAA","old"`, "3 bytes", false},

		{"32 keyslots, the last one elsewhere", `"1":{"type":"luks2"`, `"31":{"type":"luks2"`, "digests.0.keyslots", -1, `["0","1"]`, "no key slot 1", false},
		{"unknown kdf", `"type":"argon2id"`, `"type":"scrypt"`, "keyslots.1.kdf.type", 1, `"scrypt"`, `"scrypt"`, true},
		{"no salt", `"salt":"MDEy`, `"salt":"","old":"MDEy`, "keyslots.1.kdf.salt", 1, `"","old"`, "empty", true},
		{"unknown hash of the kdf", `"hash":"sha1","iterations":1000`, `"hash":"md5","iterations":1000`, "keyslots.0.kdf.hash", 0, `"md5"`, `"md5"`, true},
		{"no iterations", `"hash":"sha1","iterations":1000`, `"hash":"sha1","iterations":0`, "keyslots.0.kdf.iterations", 0, `0}},"1"`, "0", true},
		{"Argon2 with no time", `"time":4`, `"time":0`, "keyslots.1.kdf.time", 1, `0,"memory"`, "0", true},
		{"Argon2 with no lanes", `"cpus":4`, `"cpus":0`, "keyslots.1.kdf.cpus", 1, `0}}},"tokens"`, "0", true},
		{"Argon2 with more than 4 GiB", `"memory":4194304`, `"memory":4194305`, "keyslots.1.kdf.memory", 1, `4194305`, "4194305", true},
		{"unknown type of key slot", `"1":{"type":"luks2"`, `"1":{"type":"reencrypt"`, "keyslots.1.type", 1, `"reencrypt"`, `"reencrypt"`, true},
		{"unknown splitter", `"1":{"type":"luks2","key_size":64,"af":{"type":"luks1"`, `"1":{"type":"luks2","key_size":64,"af":{"type":"none"`, "keyslots.1.af.type", 1, `"none"`, `"none"`, true},
		{"stripes not 4000", `"1":{"type":"luks2","key_size":64,"af":{"type":"luks1","stripes":4000`, `"1":{"type":"luks2","key_size":64,"af":{"type":"luks1","stripes":3999`, "keyslots.1.af.stripes", 1, `3999`, "always 4000", true},
		{"key_size that does not fit the segment", `"1":{"type":"luks2","key_size":64`, `"1":{"type":"luks2","key_size":20`, "keyslots.1.key_size", 1, `20,"af"`, "160 bits", true},
		{"key_size 2^31-1", `"1":{"type":"luks2","key_size":64`, `"1":{"type":"luks2","key_size":2147483647`, "keyslots.1.area.size", 1, `"258048","encryption":"serpent-cbc`, "", true},
		{"unknown priority", `"1":{"type":"luks2"`, `"1":{"priority":3,"type":"luks2"`, "keyslots.1.priority", 1, `3,"type"`, "3", true},
		{"token naming no such slot", `"nobody-knows","keyslots":["0"]`, `"nobody-knows","keyslots":["6"]`, "tokens.7.keyslots", -1, `["6"]`, "no key slot 6", true},
		{"token with unknown type", `"nobody-knows"`, `"nobody-knows-this-either"`, "", 0, "", "", true},
		{"flag with unknown name", `"config":{`, `"config":{"flags":["later"],`, "", 0, "", "", true},
		{"json_size not that of the header", `"json_size":"12288"`, `"json_size":"12287"`, "config.json_size", -1, `"12287"`, "12288", false},
		{"keyslots_size over 128 MiB", `"keyslots_size":"2064384"`, `"keyslots_size":"134221824"`, "config.keyslots_size", -1, `"134221824"`, "at most", false},
		{"keyslots_size not aligned", `"keyslots_size":"2064384"`, `"keyslots_size":"2064383"`, "config.keyslots_size", -1, `"2064383"`, "multiple", false},
		{"keyslots_size 2^63-1", `"keyslots_size":"2064384"`, `"keyslots_size":"9223372036854775807"`, "config.keyslots_size", -1, `"9223372036854775807"`, "at most", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := editedLast(t, h, c.from, c.to)
			b := withJSON(t, h, size, in)
			found, err := use(b)
			if (err == nil) != c.usable {
				t.Fatalf("got %v, usable: %v", err, c.usable)
			}
			faults := found.Header.Faults(size, size)
			if c.field == "" {
				if len(faults) != 0 {
					t.Errorf("faults: %v", faults)
				}
				return
			}
			at := bytes.Index(in, []byte(c.at))
			if at < 0 {
				t.Fatalf("no %s in %s", c.at, in)
			}
			offset := HeaderSize + int64(at)
			if !c.usable {
				wantFault(t, err, c.field, c.slot, offset, c.reason)
				return
			}
			i := slices.IndexFunc(faults, func(f *luks.FieldError) bool { return f.Field == c.field })
			if i < 0 {
				t.Fatalf("no fault of %s in %v", c.field, faults)
			}
			wantFault(t, faults[i], c.field, c.slot, offset, c.reason)
			for slot := range h.Keyslots {
				if err := found.Header.SlotFault(slot, size); (err != nil) != (slot == c.slot) {
					t.Errorf("slot %d: %v", slot, err)
				}
			}
		})
	}
}

// editedLast is as edited for a piece that may be there several times, of which the
// last is replaced.
func editedLast(t testing.TB, h *Header, from, to string) []byte {
	t.Helper()
	text := string(writeJSON(&h.Metadata))
	at := strings.LastIndex(text, from)
	if at < 0 {
		t.Fatalf("no %s in %s", from, text)
	}
	return []byte(text[:at] + to + text[at+len(from):])
}

func TestUnknownRequirement(t *testing.T) {
	h, size := exampleHeader(t)
	b := withJSON(t, h, size, edited(t, h, `"config":{`, `"config":{"requirements":{"mandatory":["online-reencrypt-v2","later"]},`))
	found, err := use(b)
	var requirement *RequirementError
	if !errors.As(err, &requirement) || !slices.Equal(requirement.Names, []string{"online-reencrypt-v2", "later"}) {
		t.Fatalf("got %v", err)
	}
	want := `luks2: config.requirements.mandatory: not known here: "online-reencrypt-v2", "later"`
	if err.Error() != want {
		t.Errorf("got %s, want %s", err, want)
	}
	if got := found.Header.Config.Requirements.Mandatory; !slices.Equal(got, requirement.Names) {
		t.Errorf("the header that was read has %q", got)
	}
}

func TestLabelOf48Bytes(t *testing.T) {
	h, size := exampleHeader(t)
	b := container(t, h, size).Bytes()
	for _, offset := range []int64{0, h.Size} {
		copy(b[offset+offLabel:], strings.Repeat("l", 48))
		sumUp(t, b, offset, h.Size)
	}
	_, err := use(b)
	wantFault(t, err, "label", luks.NoSlot, 24, "NUL")
}

func TestTextFields(t *testing.T) {
	h, size := exampleHeader(t)
	h.Label, h.Subsystem, h.UUID = "a\x1bb", "\xFF", "not a UUID"
	faults := h.Faults(size, size)
	if len(faults) != 3 {
		t.Fatalf("got %v", faults)
	}
	wantFault(t, faults[0], "label", luks.NoSlot, 24, `"a\x1bb"`)
	wantFault(t, faults[1], "subsystem", luks.NoSlot, 208, `"\xff"`)
	wantFault(t, faults[2], "uuid", luks.NoSlot, 168, `"not a UUID"`)
	if err := h.Validate(size, size); err != nil {
		t.Errorf("not usable: %v", err)
	}
}

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

// TestReadingErrors: a copy that cannot be read is as bad as a damaged one, and the
// error is wrapped.
func TestReadingErrors(t *testing.T) {
	h, size := exampleHeader(t)
	b := container(t, h, size).Bytes()
	broken := errors.New("broken")
	for _, c := range []struct {
		name     string
		from, to int64 // what cannot be read
		ok       bool
		field    string
	}{
		{"primary", 0, 100, true, "magic"},
		{"text of the primary", 8192, 8193, true, "hdr_size"},
		{"both", 0, size, false, "magic"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := Read(brokenReader{bytes.NewReader(b), c.from, c.to, broken}, size)
			if (err == nil) != c.ok || !c.ok && !errors.Is(err, broken) {
				t.Fatalf("got %v", err)
			}
			fault := found.Copies[primary].Fault
			if fault == nil || fault.Field != c.field || !strings.Contains(fault.Reason, broken.Error()) {
				t.Errorf("got %#v", fault)
			}
		})
	}
	for _, short := range []int64{0, 4095, 4096, 16383} {
		found, err := Read(bytes.NewReader(b[:short]), short)
		var fault *luks.FieldError
		if !errors.As(err, &fault) || found.Header != nil {
			t.Errorf("%d bytes: got %v, %v", short, found.Header, err)
		}
	}
	if found, err := Read(bytes.NewReader(b[:h.Size]), h.Size); err != nil || found.Copies[secondary].Fault == nil {
		t.Errorf("only the primary: %v, %+v", err, found.Copies[secondary])
	}
}

type brokenReader struct {
	*bytes.Reader
	from, to int64
	err      error
}

func (b brokenReader) ReadAt(p []byte, off int64) (int, error) {
	if off < b.to && off+int64(len(p)) > b.from {
		return 0, b.err
	}
	return b.Reader.ReadAt(p, off)
}

// TestMessagesAreShort, whatever a header says.
func TestMessagesAreShort(t *testing.T) {
	long := strings.Repeat("\x01", 1000)
	many := strings.Split(strings.Repeat("word,", 1000), ",")
	h, size := exampleHeader(t)
	h.Label, h.UUID = long, long
	h.Segments[0].Encryption, h.Segments[0].Flags = long, many
	h.Keyslots[0].Area.Encryption, h.Keyslots[0].AF.Hash, h.Keyslots[0].KDF.Type = "aes-xts-"+long, long, long
	h.Config.Requirements.Mandatory = append(many, long)
	errs := []error{h.checkRequirements()}
	for _, fault := range h.Faults(size, size) {
		errs = append(errs, fault)
	}
	if len(errs) < 8 {
		t.Errorf("only %d errors: %v", len(errs), errs)
	}
	for _, err := range errs {
		if len(err.Error()) > 500 {
			t.Errorf("%d bytes: %.100s...", len(err.Error()), err)
		}
	}
}

// TestHostileSizesTakeNoMemory: a size is checked before it is allocated.
func TestHostileSizesTakeNoMemory(t *testing.T) {
	h, size := exampleHeader(t)
	b := container(t, h, size).Bytes()
	for _, n := range []uint64{4 << 20, 8 << 20, 1 << 40, 1 << 63} {
		binary.BigEndian.PutUint64(b[offSize:], n)
		binary.BigEndian.PutUint64(b[h.Size+offSize:], n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(bytes.NewReader(b), size)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%d: no error", n)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%d: %d bytes of memory", n, got)
		}
	}
}
