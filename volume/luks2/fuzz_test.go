package luks2

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/golden"
	"serpcrypt/volume/luks"
)

// headersSize is enough for both copies in each of the golden images, in bytes.
const headersSize = 128 << 10

// FuzzRead reads a store that begins with head and has text as the JSON text of a
// primary copy; its checksum is made right if summed, or else nearly nothing would
// get past it. What can be read can be written and read again.
func FuzzRead(f *testing.F) {
	for _, image := range golden.LUKS2(f) {
		b := image.Head(f, headersSize)
		h := read(f, b).Header
		f.Add(b[:HeaderSize], textOf(b[HeaderSize:h.Size]), true)
		f.Add(b[h.Size:][:HeaderSize], textOf(b[HeaderSize:h.Size]), true)
	}
	h, size := exampleHeader(f)
	b := container(f, h, size).Bytes()
	f.Add(b[:HeaderSize], writeJSON(&h.Metadata), false)
	f.Add(bytes.Repeat([]byte{0xFF}, HeaderSize), []byte("{}"), true)
	f.Fuzz(func(t *testing.T, head, text []byte, summed bool) {
		const room = 256 << 10 // not the largest headers, for speed
		b := make([]byte, room)
		copy(b, head[:min(len(head), HeaderSize)])
		copy(b[HeaderSize:], text)
		if fields, fault := parseFields(b, 0); summed && fault == nil && fields.Size <= room {
			if sum, fault := checksum(b[:fields.Size], string(textOf(fields.ChecksumAlg[:]))); fault == nil {
				copy(b[offChecksum:], sum[:])
			}
		}
		found, err := Read(bytes.NewReader(b), room)
		if (err == nil) != (found.Header != nil) {
			t.Fatalf("%v with %v", found.Header, err)
		}
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			return
		}
		h := found.Header
		checkValid(t, h, room)
		s := faultstore.New(append(b, make([]byte, room)...))
		if err := h.Save(s); err != nil {
			// A text as short as it can be may have no room in our form.
			var full *luks.FieldError
			if !errors.As(err, &full) || full.Field != "json" && full.Field != "seqid" {
				t.Fatal(err)
			}
			return
		}
		again := read(t, s.Bytes())
		again.Header.places, h.places = nil, nil
		if !reflect.DeepEqual(again.Header, h) || again.Copies[0].Fault != nil || again.Copies[1].Fault != nil {
			t.Fatalf("got %+v\nwant %+v", again, h)
		}
	})
}

// checkValid checks that what Validate passes is safe to allocate, read and write.
func checkValid(t *testing.T, h *Header, size int64) {
	t.Helper()
	for _, fault := range h.Faults(size, luks.UnknownSize) {
		if len(fault.Error()) > 1000 || fault.Offset < 0 || fault.Offset >= h.Size {
			t.Errorf("fault %#v", fault)
		}
	}
	if h.Validate(size, luks.UnknownSize) != nil {
		return
	}
	begin, end := h.KeyslotsArea()
	for slot, k := range h.Keyslots {
		if k.Area.Offset < begin || k.Area.Size < 0 || k.Area.Offset+k.Area.Size > end {
			t.Errorf("slot %d: area %+v", slot, k.Area)
		}
		if h.SlotFault(slot, size) == nil && (k.KeySize < 1 || k.KeySize > maxKeySize || len(k.KDF.Salt) == 0 || k.Area.Offset+k.Area.Size > size) {
			t.Errorf("slot %d: %+v", slot, k)
		}
	}
	if s := h.Segments[0]; s.Offset != 0 && s.Offset < end || s.SectorSize < 512 {
		t.Errorf("segment %+v", s)
	}
}

// FuzzJSON compares with encoding/json, which accepts all that is JSON and some
// more, and checks that writing gives what was read.
func FuzzJSON(f *testing.F) {
	for _, image := range golden.LUKS2(f) {
		b := image.Head(f, headersSize)
		f.Add(textOf(b[HeaderSize:read(f, b).Header.Size]))
	}
	h, _ := exampleHeader(f)
	f.Add(writeJSON(&h.Metadata))
	f.Add([]byte(`{"keyslots":{},"tokens":{},"segments":{},"digests":{},"config":{"json_size":"0","keyslots_size":"0","requirements":{"mandatory":[],"x":0}},"\ud83d\ude00":[-1.5e+3,true,false,null,"\"\\\/\b\f\n\r\t"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m Metadata
		_, fault := readJSON(text, HeaderSize, &m)
		if fault != nil {
			if fault.Offset < HeaderSize || fault.Offset > HeaderSize+int64(len(text)) || fault.Field == "" {
				t.Errorf("got %#v", fault)
			}
			return
		}
		if !json.Valid(text) {
			t.Fatal("this is no JSON")
		}
		written := writeJSON(&m)
		if !json.Valid(written) {
			t.Fatalf("wrote no JSON: %s", written)
		}
		var again Metadata
		if _, fault := readJSON(written, 0, &again); fault != nil {
			t.Fatalf("%v in %s", fault, written)
		}
		if !reflect.DeepEqual(again, m) {
			t.Fatalf("got %+v\nwant %+v", again, m)
		}
		if third := writeJSON(&again); !bytes.Equal(third, written) {
			t.Fatalf("got %s\nwant %s", third, written)
		}
	})
}
