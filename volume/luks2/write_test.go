package luks2

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks"
)

func TestSave(t *testing.T) {
	h, size := exampleHeader(t)
	s := faultstore.New(make([]byte, size))
	var salts [][]byte
	for n := uint64(1); n <= 3; n++ {
		h.Label = fmt.Sprint("update ", n)
		if err := h.Save(s); err != nil {
			t.Fatal(err)
		}
		b := s.Bytes()
		found := read(t, b)
		if h.SeqID != n || found.Header.SeqID != n || found.Header.Label != h.Label {
			t.Errorf("update %d: number %d, read %d with label %s", n, h.SeqID, found.Header.SeqID, found.Header.Label)
		}
		for i, c := range found.Copies {
			if c.Fault != nil || c.Stale || c.SeqID != n {
				t.Errorf("update %d: copy %d: %+v", n, i, c)
			}
		}
		salts = append(salts, b[offSalt:][:SaltSize], b[h.Size+offSalt:][:SaltSize])
		if rest := b[2*h.Size:]; !bytes.Equal(rest, make([]byte, len(rest))) {
			t.Errorf("update %d: something was written behind the header", n)
		}
	}
	for i := range salts {
		for j := range i {
			if bytes.Equal(salts[i], salts[j]) {
				t.Errorf("salts %d and %d are the same", i, j)
			}
		}
	}
}

// ops records what is done to a store.
func ops(s *faultstore.Store) *[]faultstore.Op {
	var done []faultstore.Op
	s.Fault = func(op faultstore.Op) error {
		done = append(done, op)
		return nil
	}
	return &done
}

// TestSaveOrder: each copy is written, synced and read back before the other is
// touched, and the one that counts comes last.
func TestSaveOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(b []byte, h *Header)
		first int64 // copy
	}{
		{"both good", func([]byte, *Header) {}, 0},
		{"none good", func(b []byte, h *Header) { clear(b[:2*h.Size]) }, 0},
		{"primary bad", func(b []byte, h *Header) { b[5000] ^= 1 }, 0},
		{"secondary bad", func(b []byte, h *Header) { b[h.Size+5000] ^= 1 }, MinSize},
		{"primary stale", func(b []byte, h *Header) { b[h.Size+offSeqID] = 1; sumUp(t, b, h.Size, h.Size) }, 0},
		{"secondary stale", func(b []byte, h *Header) { b[offSeqID] = 1; sumUp(t, b, 0, h.Size) }, MinSize},
		{"secondary of other contents", func(b []byte, h *Header) { b[h.Size+offLabel] = 'X'; sumUp(t, b, h.Size, h.Size) }, MinSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, size := exampleHeader(t)
			b := container(t, h, size).Bytes()
			c.edit(b, h)
			s := faultstore.New(b)
			done := ops(s)
			if err := h.Save(s); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, op := range *done {
				if op.Kind == faultstore.Write {
					got = append(got, fmt.Sprintf("write %d", op.Off))
				} else if len(got) > 0 {
					got = append(got, map[faultstore.Kind]string{faultstore.Read: fmt.Sprintf("read %d", op.Off), faultstore.Sync: "sync"}[op.Kind])
				}
				if op.Kind != faultstore.Sync && op.Off+int64(op.Len) > MaxSize*2 {
					t.Errorf("operation %d: %+v", i, op)
				}
			}
			second := h.Size - c.first
			want := fmt.Sprint([]string{
				fmt.Sprintf("write %d", c.first), "sync", fmt.Sprintf("read %d", c.first),
				fmt.Sprintf("write %d", second), "sync", fmt.Sprintf("read %d", second),
			})
			if fmt.Sprint(got) != want {
				t.Errorf("got %v, want %v", got, want)
			}
			if found := read(t, s.Bytes()); found.Copies[0].Fault != nil || found.Copies[1].Fault != nil || found.Header.SeqID != h.SeqID {
				t.Errorf("afterwards: %+v", found)
			}
		})
	}
}

// TestSaveGoesBeyondTheStore: a header that is put over a newer one is newer.
func TestSaveGoesBeyondTheStore(t *testing.T) {
	h, size := exampleHeader(t)
	s := container(t, h, size)
	for range 4 {
		if err := h.Save(s); err != nil {
			t.Fatal(err)
		}
	}
	other, _ := exampleHeader(t)
	other.SeqID = 2
	if err := other.Save(s); err != nil || other.SeqID != 6 {
		t.Errorf("number %d, %v; want 6", other.SeqID, err)
	}
	h.SeqID = math.MaxUint64
	before := s.Bytes()
	wantFault(t, h.Save(s), "seqid", luks.NoSlot, offSeqID, "18446744073709551615")
	if !bytes.Equal(s.Bytes(), before) {
		t.Error("something was written")
	}
}

// TestNothingIsWrittenOfABadHeader: what could not be read again is not written.
func TestNothingIsWrittenOfABadHeader(t *testing.T) {
	for name, edit := range map[string]func(h *Header){
		"text too long": func(h *Header) { h.Config.Flags = make([]string, 10000) },
		"label":         func(h *Header) { h.Label = "a\x00" },
		"size":          func(h *Header) { h.Size = 8192 },
		"no JSON":       func(h *Header) { h.Unknown = []Member{{"x", []byte("{")}} },
		"name twice":    func(h *Header) { h.Unknown = []Member{{"config", []byte("{}")}} },
		"slot 32":       func(h *Header) { h.Keyslots[32] = h.Keyslots[0] },
		"negative":      func(h *Header) { h.Segments[0].Offset = -512 },
	} {
		t.Run(name, func(t *testing.T) {
			h, size := exampleHeader(t)
			s := container(t, h, size)
			before := s.Bytes()
			edit(h)
			var fault *luks.FieldError
			if err := h.Save(s); !errors.As(err, &fault) {
				t.Errorf("got %v", err)
			}
			if !bytes.Equal(s.Bytes(), before) {
				t.Error("something was written")
			}
		})
	}
}

// TestPowerCuts: whenever the power fails, whatever sectors get written, the
// header is the old one or the new one, also if a copy was bad before.
func TestPowerCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name string
		edit func(b []byte, h *Header)
	}{
		{"both good", func([]byte, *Header) {}},
		{"primary bad", func(b []byte, h *Header) { clear(b[:512]) }},
		{"secondary bad", func(b []byte, h *Header) { clear(b[h.Size:][:512]) }},
		{"primary stale", func(b []byte, h *Header) { b[h.Size+offSeqID] = 1; sumUp(t, b, h.Size, h.Size) }},
		{"secondary stale", func(b []byte, h *Header) { b[offSeqID] = 1; sumUp(t, b, 0, h.Size) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, size := exampleHeader(t)
			old.Label = "old"
			b := container(t, old, size).Bytes()
			c.edit(b, old)
			cuts, seen := 0, map[string]int{}
			for fail := 0; ; fail++ {
				s := faultstore.New(bytes.Clone(b))
				count := 0
				s.Fault = func(op faultstore.Op) error {
					if count++; count > fail {
						return faultstore.ErrPower
					}
					return nil
				}
				h := read(t, b).Header
				h.Label = "new"
				err := h.Save(s)
				if err == nil {
					break
				}
				for after := range s.AfterPowerCuts(100, random) {
					cuts++
					found, err := Read(after, size)
					if err != nil {
						t.Fatalf("operation %d: %v", fail, err)
					}
					seen[found.Header.Label]++
					// Another update mends what was left.
					found.Header.Label = "next"
					if err := found.Header.Save(after); err != nil {
						t.Fatal(err)
					}
					next := read(t, after.Bytes())
					if next.Header.Label != "next" || next.Copies[0].Fault != nil || next.Copies[1].Fault != nil || next.Copies[0].Stale || next.Copies[1].Stale {
						t.Fatalf("operation %d: then %+v", fail, next)
					}
				}
			}
			if seen["old"]+seen["new"] != cuts || seen["old"] == 0 || seen["new"] == 0 {
				t.Errorf("%d power cuts: %v", cuts, seen)
			}
		})
	}
}

// TestFailingStores: errors of each operation, and short ones, leave the old header
// or the new one.
func TestFailingStores(t *testing.T) {
	old, size := exampleHeader(t)
	old.Label = "old"
	b := container(t, old, size).Bytes()
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC, faultstore.Short(512), faultstore.Short(4097)} {
		failed := 0
		for fail := 0; fail < 40; fail++ {
			s := faultstore.New(bytes.Clone(b))
			count, reads := 0, false
			s.Fault = func(op faultstore.Op) error {
				if count++; count == fail+1 {
					reads = op.Kind == faultstore.Read
					return fault
				}
				return nil
			}
			h := read(t, b).Header
			h.Label = "new"
			err := h.Save(s)
			if err == nil && !reads && fail < count {
				t.Fatalf("%v in operation %d: no error", fault, fail)
			}
			if err != nil {
				failed++
			}
			s.Fault = nil
			found, readErr := Read(s, size)
			if readErr != nil {
				t.Fatalf("%v in operation %d: %v", fault, fail, readErr)
			}
			if label := found.Header.Label; label != "new" && (label != "old" || err == nil) {
				t.Errorf("%v in operation %d: %v, label %s", fault, fail, err, label)
			}
		}
		if failed < 4 {
			t.Errorf("%v: only %d failures", fault, failed)
		}
	}
}

// TestSaveReadsBack: a store that loses what it is given is found out before the
// other copy is touched.
func TestSaveReadsBack(t *testing.T) {
	h, size := exampleHeader(t)
	s := container(t, h, size)
	before := s.Bytes()
	err := h.Save(forgetful{s})
	wantFault(t, err, "header copy", luks.NoSlot, 0, "read back")
	if !bytes.Equal(s.Bytes(), before) {
		t.Error("the other copy was written")
	}
}

// forgetful loses what is written to the primary copy.
type forgetful struct{ *faultstore.Store }

func (f forgetful) WriteAt(p []byte, off int64) (int, error) {
	if off < MinSize {
		return len(p), nil
	}
	return f.Store.WriteAt(p, off)
}
