package luks2

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// textOf returns a JSON text without the NULs behind it.
func textOf(area []byte) []byte { return bytes.TrimRight(area, "\x00") }

func sameJSON(t *testing.T, got, want []byte) {
	t.Helper()
	var values [2]any
	for i, text := range [][]byte{got, want} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&values[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(values[0], values[1]) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestUnknownMembers: every kind of object keeps what it does not know, letter by
// letter and in its order.
func TestUnknownMembers(t *testing.T) {
	const extra = `"x-2":{"n":1e400,"m":[-0.50,"\u00e9\/\u0000",null]},"x-1":123456789012345678901234567890,"x \"3\"":true`
	h, size := exampleHeader(t)
	text := string(writeJSON(&h.Metadata))
	begins := 0
	for _, begin := range []string{
		`{"keyslots":`, `{"type":"luks2",`, `{"type":"luks1",`, `{"type":"raw",`, `{"type":"pbkdf2","salt":`, `{"type":"nobody-knows",`,
		`{"type":"crypt",`, `{"type":"pbkdf2","keyslots":`, `{"json_size":`,
	} {
		if strings.Count(text, begin) != 1 {
			t.Fatalf("%d times %s in %s", strings.Count(text, begin), begin, text)
		}
		text = strings.Replace(text, begin, "{"+extra+","+begin[1:], 1)
		begins++
	}
	text = strings.Replace(text, `"keyslots_size"`, `"requirements":{`+extra+`},"keyslots_size"`, 1)
	got := read(t, withJSON(t, h, size, []byte(text))).Header
	again := string(writeJSON(&got.Metadata))
	if n := strings.Count(again, extra); n != begins+1 {
		t.Errorf("%d times there, want %d: %s", n, begins+1, again)
	}
	sameJSON(t, []byte(again), []byte(text))
}

// TestUnknownTypes: of objects of unknown types nothing gets lost.
func TestUnknownTypes(t *testing.T) {
	h, size := exampleHeader(t)
	for _, c := range []struct{ from, to string }{
		{`"type":"luks2"`, `"type":"reencrypt"`},
		{`"type":"luks1"`, `"type":"luks7"`},
		{`"type":"raw"`, `"type":"checksum"`},
		{`"type":"pbkdf2","salt"`, `"type":"scrypt","salt"`},
		{`"type":"crypt"`, `"type":"linear"`},
		{`"type":"pbkdf2","keyslots"`, `"type":"blake3","keyslots"`},
		{`"type":"nobody-knows"`, `"type":"systemd-tpm2"`},
	} {
		t.Run(c.to, func(t *testing.T) {
			text := edited(t, h, c.from, c.to)
			got := read(t, withJSON(t, h, size, text)).Header
			sameJSON(t, writeJSON(&got.Metadata), text)
		})
	}
}

func TestTextsThatAreAccepted(t *testing.T) {
	h, size := exampleHeader(t)
	text := string(writeJSON(&h.Metadata))
	for name, in := range map[string]string{
		"as it was made":          text,
		"white space":             strings.NewReplacer(`,"type"`, " ,\t\n\"type\"", `"area":`, "\"area\" :\r ").Replace(text) + " \n",
		"escaped names":           strings.Replace(text, `"config"`, `"\u0063onf\u0069g"`, 1),
		"nested 32 deep":          strings.Replace(text, `"zz":`, `"deep":`+strings.Repeat("[", 31)+strings.Repeat("]", 31)+`,"zz":`, 1),
		"surrogate pair":          strings.Replace(text, `"zz":`, `"\ud83d\ude00":0,"zz":`, 1),
		"1024 members":            strings.Replace(text, `"zz":`, `"many":[`+strings.Repeat("0,", 1023)+`0],"zz":`, 1),
		"words and empty objects": strings.Replace(text, `"zz":`, `"w":[true,false,null,{},[],"",0,-1,1E+2,0.5e-3],"zz":`, 1),
		"no flags, no tokens":     strings.Replace(text, `"tokens":{`, `"tokens":{},"old":{`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, withJSON(t, h, size, []byte(in))).Header
			if err := got.Validate(size, size); err != nil {
				t.Error(err)
			}
			sameJSON(t, writeJSON(&got.Metadata), []byte(in))
		})
	}
}

// TestTextsThatAreRefused: what is no JSON, and what does not have the form that
// the format gives it.
func TestTextsThatAreRefused(t *testing.T) {
	h, size := exampleHeader(t)
	whole := string(writeJSON(&h.Metadata))
	for _, c := range []struct {
		name, from, to string // replaced in the text
		field          string
		slot           int
		at             string // before which the fault is, in the new text; empty: at its end
		reason         string
	}{
		{"not closed", whole, whole[:len(whole)-1], "json", -1, "", "ends where"},
		{"not closed in a string", whole, `{"keyslots`, "json", -1, "", "ends in a string"},
		{"not closed in an escape", whole, `{"keyslots\`, "json", -1, `\`, "ends in a string"},
		{"an array", whole, `[]`, "json", -1, `[`, "must begin"},
		{"white space in front", whole, " " + whole, "json", -1, " {", "must begin"},
		{"something behind", whole, whole + `{}`, "json", -1, "{}", "follows"},
		{"nested 33 deep", `"zz":`, `"deep":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `,"zz":`, "json", -1, strings.Repeat("]", 32), "deep"},
		{"a name twice", `"zz":`, `"aa":`, "json", -1, `"aa":[`, `"aa" stands here twice`},
		{"a name twice, once escaped", `"zz":`, `"\u0061a":`, "json", -1, `"aa":[`, "twice"},
		{"a name twice, deep in a token", `"b":[`, `"a":[`, "json", -1, `"a":"\u00e9`, "twice"},
		{"1025 members", `"zz":`, `"many":[` + strings.Repeat("0,", 1024) + `0],"zz":`, "json", -1, `,0],"zz"`, "more than 1024"},
		{"comma at the end", `"size":"dynamic"`, `"size":"dynamic",`, "json", -1, `,"iv_tweak"`, "belongs"},
		{"comment", `"zz":`, `/**/"zz":`, "json", -1, `/**/`, "belongs"},
		{"single quotes", `"zz":`, `'zz':`, "json", -1, `'zz'`, "belongs"},
		{"no colon", `"zz":`, `"zz",`, "json", -1, `,1234`, "belongs"},
		{"NaN", `"zz":`, `"nan":NaN,"zz":`, "json", -1, `NaN`, "belongs"},
		{"half a word", `"zz":`, `"w":nul,"zz":`, "json", -1, `nul,`, "no value"},
		{"plus sign", `"zz":`, `"w":+1,"zz":`, "json", -1, `+1`, "belongs"},
		{"minus sign alone", `"zz":`, `"w":-,"zz":`, "json", -1, `,"zz"`, "digit"},
		{"zero in front", `"zz":`, `"w":01,"zz":`, "json", -1, `1,"zz"`, "belongs"},
		{"no fraction", `"zz":`, `"w":1.,"zz":`, "json", -1, `,"zz"`, "digit"},
		{"no exponent", `"zz":`, `"w":1e+,"zz":`, "json", -1, `,"zz"`, "digit"},
		{"control character", `"zz":`, "\"w\":\"\x01\",\"zz\":", "json", -1, "\x01", "in a string"},
		{"no UTF-8", `"zz":`, "\"w\":\"\xC3\",\"zz\":", "json", -1, "\xC3\",", "UTF-8"},
		{"unknown escape", `"zz":`, `"w":"\x","zz":`, "json", -1, `\x`, "escape"},
		{"escape without digits", `"zz":`, `"w":"\u00g0","zz":`, "json", -1, `\u00g0`, "escape"},
		{"low surrogate alone", `"zz":`, `"w":"\udc00","zz":`, "json", -1, `","zz"`, "surrogate"},
		{"high surrogate alone", `"zz":`, `"w":"\ud800\u0041","zz":`, "json", -1, `","zz"`, "surrogate"},
		{"high surrogate at the end", `"zz":`, `"w":"\ud800","zz":`, "json", -1, `","zz"`, "escape"},

		{"no key slots", `"keyslots":{"0"`, `"keyslot":{"0"`, "keyslots", -1, `{"keyslot"`, "missing"},
		{"no tokens", `"tokens"`, `"token"`, "tokens", -1, `{"keyslots":{`, "missing"},
		{"no segments", `"segments":{`, `"segment":{`, "segments", -1, `{"keyslots":{`, "missing"},
		{"no digests", `"digests"`, `"digest5"`, "digests", -1, `{"keyslots":{`, "missing"},
		{"no config", `"config"`, `"conf"`, "config", -1, `{"keyslots":{`, "missing"},
		{"tokens in an array", `"tokens":{`, `"tokens":[],"old":{`, "tokens", -1, `[],"old"`, "an array, must be an object"},
		{"key slot is null", `"0":{"type":"luks2"`, `"1":null,"0":{"type":"luks2"`, "keyslots.1", 1, `null`, "must be an object"},
		{"no type", `"type":"luks2"`, `"typ":"luks2"`, "keyslots.0.type", 0, `{"typ"`, "missing"},
		{"type is a number", `"type":"luks2"`, `"type":2`, "keyslots.0.type", 0, `2,"key_size"`, "a number, must be a string"},
		{"no area", `"area":`, `"aria":`, "keyslots.0.area", 0, `{"type":"luks2"`, "missing"},
		{"no kdf", `"kdf":`, `"kdv":`, "keyslots.0.kdf", 0, `{"type":"luks2"`, "missing"},
		{"no af", `"af":`, `"av":`, "keyslots.0.af", 0, `{"type":"luks2"`, "missing"},
		{"number as a number instead of a string", `"offset":"32768"`, `"offset":32768`, "keyslots.0.area.offset", 0, `32768,`, "a number, must be a string"},
		{"string instead of a number", `"stripes":4000`, `"stripes":"4000"`, "keyslots.0.af.stripes", 0, `"4000"`, "a string, must be a number"},
		{"2^64", `"offset":"32768"`, `"offset":"18446744073709551616"`, "keyslots.0.area.offset", 0, `"18446744073709551616"`, "18446744073709551616"},
		{"2^63", `"offset":"32768"`, `"offset":"9223372036854775808"`, "keyslots.0.area.offset", 0, `"9223372036854775808"`, "2^63"},
		{"negative", `"offset":"32768"`, `"offset":"-32768"`, "keyslots.0.area.offset", 0, `"-32768"`, `"-32768"`},
		{"plus sign in a string", `"offset":"32768"`, `"offset":"+32768"`, "keyslots.0.area.offset", 0, `"+32768"`, "digits"},
		{"zero in front in a string", `"offset":"32768"`, `"offset":"032768"`, "keyslots.0.area.offset", 0, `"032768"`, "digits"},
		{"hexadecimal", `"offset":"32768"`, `"offset":"0x8000"`, "keyslots.0.area.offset", 0, `"0x8000"`, "digits"},
		{"no digits", `"offset":"32768"`, `"offset":""`, "keyslots.0.area.offset", 0, `"","size"`, "digits"},
		{"iv_tweak 2^64", `"iv_tweak":"0"`, `"iv_tweak":"18446744073709551616"`, "segments.0.iv_tweak", -1, `"18446744073709551616"`, "2^64"},
		{"segment size in words", `"size":"dynamic"`, `"size":"Dynamic"`, "segments.0.size", -1, `"Dynamic"`, "digits"},
		{"key_size 2^31", `"key_size":64,"af"`, `"key_size":2147483648,"af"`, "keyslots.0.key_size", 0, `2147483648,`, "2147483647"},
		{"key_size -1", `"key_size":64,"af"`, `"key_size":-1,"af"`, "keyslots.0.key_size", 0, `-1,"af"`, "-1"},
		{"key_size with a fraction", `"key_size":64,"af"`, `"key_size":64.0,"af"`, "keyslots.0.key_size", 0, `64.0,"af"`, "whole number"},
		{"33 keyslots", `"0":{"type":"luks2"`, `"32":{},"0":{"type":"luks2"`, "keyslots", -1, `{},"0"`, `"32" is no number from 0 to 31`},
		{"key slot 00", `"0":{"type":"luks2"`, `"00":{},"0":{"type":"luks2"`, "keyslots", -1, `{},"0"`, `"00"`},
		{"key slot without a number", `"0":{"type":"luks2"`, `"":{},"0":{"type":"luks2"`, "keyslots", -1, `{},"0"`, `""`},
		{"key slot -1", `"0":{"type":"luks2"`, `"-1":{},"0":{"type":"luks2"`, "keyslots", -1, `{},"0"`, `"-1"`},
		{"token 32", `"7":{"type"`, `"32":{"type"`, "tokens", -1, `{"type":"nobody-knows"`, `"32"`},
		{"token without type", `"type":"nobody-knows"`, `"typ":"nobody-knows"`, "tokens.7.type", -1, `{"typ"`, "missing"},
		{"segment 32", `"0":{"type":"crypt"`, `"32":{},"0":{"type":"crypt"`, "segments", -1, `{},"0"`, `"32"`},
		{"digest 8", `"digests":{"0"`, `"digests":{"8"`, "digests", -1, `{"type":"pbkdf2","keyslots"`, "0 to 7"},
		{"digest of a number", `"segments":["0"]`, `"segments":[0]`, "digests.0.segments", -1, `0],"hash"`, "must be a string"},
		{"digest of no number", `"segments":["0"]`, `"segments":["x"]`, "digests.0.segments", -1, `["x"]`, `"x"`},
		{"flags in a string", `"config":{`, `"config":{"flags":"x",`, "config.flags", -1, `"x",`, "must be an array"},
		{"flag is a number", `"config":{`, `"config":{"flags":[1],`, "config.flags", -1, `1],`, "must be a string"},
		{"requirements in an array", `"config":{`, `"config":{"requirements":[],`, "config.requirements", -1, `[],"json_size"`, "must be an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := edited(t, h, c.from, c.to)
			at := len(in)
			if c.at != "" {
				if at = bytes.Index(in, []byte(c.at)); at < 0 {
					t.Fatalf("no %s in %s", c.at, in)
				}
			}
			b := withJSON(t, h, size, in)
			_, err := Read(bytes.NewReader(b), size)
			wantFault(t, err, c.field, c.slot, HeaderSize+int64(at), c.reason)
		})
	}
	// These are there twice; the first counts.
	for _, c := range []struct{ name, from, to, field, reason string }{
		{"negative iterations", `"iterations":1000`, `"iterations":-1`, "keyslots.0.kdf.iterations", "-1"},
		{"salt is no base64", `"salt":"paW`, `"salt":"!aW`, "keyslots.0.kdf.salt", "base64"},
		{"salt with a newline", `"salt":"paW`, `"salt":"\npaW`, "keyslots.0.kdf.salt", "base64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := strings.Replace(whole, c.from, c.to, 1)
			b := withJSON(t, h, size, []byte(in))
			_, err := Read(bytes.NewReader(b), size)
			wantFault(t, err, c.field, 0, -1, c.reason)
		})
	}
}

// TestHostileTexts: neither size nor depth of a text costs much memory.
func TestHostileTexts(t *testing.T) {
	h, _ := exampleHeader(t)
	h.Size = MaxSize
	h.Config.JSONSize = MaxSize - HeaderSize
	const room = MaxSize - HeaderSize - 1
	fill := func(begin, piece string) string {
		return begin + strings.Repeat(piece, (room-len(begin))/len(piece))
	}
	for name, in := range map[string]string{
		"nested 100000 deep":     fill(`{"a":`, "[")[:100005],
		"nested as deep as fits": fill(`{"a":`, "["),
		"objects in objects":     fill(`{"a":`, `{"a":`),
		"an endless array":       fill(`{"a":[0`, ",0"),
		"an endless string":      fill(`{"a":"`, "x"),
		"an endless name":        fill(`{"`, `\u0061`),
		"an endless number":      fill(`{"keyslots":{},"tokens":{},"segments":{},"digests":{},"config":{"json_size":`, "9"),
		"an endless type":        fill(`{"keyslots":{"0":{"type":"`, "9")[:room-3] + `"}}`,
		"an endless slot":        fill(`{"keyslots":{"`, "9")[:room-6] + `":{}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := withJSON(t, h, 2*MaxSize, []byte(in))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			found, err := Read(bytes.NewReader(b), int64(len(b)))
			runtime.ReadMemStats(&after)
			if found.Header != nil || err == nil {
				t.Fatalf("got %v, %v", found.Header, err)
			}
			if len(err.Error()) > 500 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			// Two copies and their search, some strings from the text.
			if got := after.TotalAlloc - before.TotalAlloc; got > 20*MaxSize {
				t.Errorf("%d bytes of memory", got)
			}
		})
	}
}
