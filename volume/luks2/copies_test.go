package luks2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
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
