package luks2

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"serpcrypt/volume/luks"
)

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
