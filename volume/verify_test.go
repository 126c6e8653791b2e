package volume

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/golden"
)

// results returns "check: result" in order.
func results(r *Report) string {
	var all []string
	for _, c := range r.Checks {
		all = append(all, fmt.Sprintf("%s: %s", c.Name, c.Result))
	}
	return strings.Join(all, ", ")
}

func check(t *testing.T, r *Report, name string) Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %+v", name, r)
	return Check{}
}

// verify is Verify of a container that can be opened.
func verify(t *testing.T, s Store) *Report {
	t.Helper()
	r, err := Verify(background, Attached(s), unlocked(t, s), Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerifyOfAWholeContainer(t *testing.T) {
	p := quick
	p.Slot = 2
	const payload = 3<<20 + 512
	s := format(t, p, payload)
	before := s.Bytes()
	m := &meter{t: t, total: payload}
	r, err := Verify(background, Attached(s), unlocked(t, s), Options{}, m.report)
	if err != nil {
		t.Fatal(err)
	}
	m.finish(payload)
	if want := "header: passed, key slots: passed, key slot: passed, digest: passed, payload: passed, file system: skipped"; results(r) != want || r.Err() != nil {
		t.Errorf("got %s (%v), want %s", results(r), r.Err(), want)
	}
	if r.Slot != 2 || r.Bytes != payload || r.FileSystem != nil || r.Kernel != serpent.Auto.Resolve() || r.Header.KeyBytes != 16 {
		t.Errorf("got %+v", r)
	}
	if !bytes.Equal(s.Bytes(), before) {
		t.Error("something was written")
	}
}

func TestVerifyWithAKeyOfNoSlot(t *testing.T) {
	s := format(t, quick, 4096)
	key, err := CheckKey(background, Attached(s), unlocked(t, s).Bytes.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	r, err := Verify(background, Attached(s), key, Options{Kernel: serpent.Generic}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "header: passed, key slots: passed, key slot: skipped, digest: passed, payload: passed, file system: skipped"; results(r) != want || r.Slot != -1 || r.Kernel != serpent.Generic {
		t.Errorf("got %s, %+v", results(r), r)
	}
}

func TestVerifyWithoutKey(t *testing.T) {
	r, err := Verify(background, Attached(format(t, quick, 4096)), nil, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "header: passed, key slots: passed, key slot: skipped, digest: skipped, payload: skipped, file system: skipped"; results(r) != want || r.Slot != -1 {
		t.Errorf("got %s, %+v", results(r), r)
	}
}

func TestVerifyCancelled(t *testing.T) {
	s := format(t, quick, 4096)
	ctx, cancel := context.WithCancel(background)
	_, err := Verify(ctx, Attached(s), unlocked(t, s), Options{}, func(done, total int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestVerifyOfHeaderFaults(t *testing.T) {
	s := format(t, quick, 4096)
	// One slot that cannot be used leaves the rest to be verified.
	putSlotField(t, s, 6, atActive, 7)
	key := unlocked(t, s)
	r, err := Verify(background, Attached(s), key, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "header: failed, key slots: passed, key slot: passed, digest: passed, payload: passed, file system: skipped"; results(r) != want {
		t.Errorf("got %s, want %s", results(r), want)
	}
	if faults := check(t, r, CheckHeader).Faults; len(faults) != 1 || faults[0].Slot != 6 || faults[0].Offset != atSlots+6*slotLength {
		t.Errorf("got %v", faults)
	}
	// All faults of a header that is of no use.
	putSlotField(t, s, 5, atStripes, 0)
	putSlotField(t, s, 3, atMaterial, 0)
	r, err = Verify(background, Attached(s), key, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "header: failed, key slots: skipped, key slot: skipped, digest: skipped, payload: skipped, file system: skipped"; results(r) != want {
		t.Errorf("got %s, want %s", results(r), want)
	}
	if faults := check(t, r, CheckHeader).Faults; len(faults) != 3 || faults[0].Slot != 3 || faults[1].Slot != 5 || faults[2].Slot != 6 {
		t.Errorf("got %v", faults)
	}
}

func TestVerifyOfUnreadableSectors(t *testing.T) {
	const payload = 3 << 20
	s := format(t, quick, payload)
	bad := []int64{512, chunkSize + 1024, chunkSize + 1536, payload - 512} // in the volume
	s.Fault = func(op faultstore.Op) error {
		for _, at := range bad {
			if at += quick.PayloadOffset; op.Off < at+512 && at < op.Off+int64(op.Len) {
				return syscall.EIO
			}
		}
		return nil
	}
	r := verify(t, s)
	c := check(t, r, CheckPayload)
	if c.Result != Failed || len(c.Faults) != len(bad) {
		t.Fatalf("got %+v", c)
	}
	for i, fault := range c.Faults {
		if want := bad[i] + quick.PayloadOffset; fault.Offset != want || !strings.Contains(fault.Reason, "input/output error") {
			t.Errorf("fault %d: %v, want one at %d", i, fault, want)
		}
	}
}

func TestVerifyKeepsFewFaults(t *testing.T) {
	const sectors = 3 * maxFaults
	s := format(t, quick, sectors*512)
	s.Fault = func(op faultstore.Op) error {
		if op.Off >= quick.PayloadOffset {
			return syscall.EIO
		}
		return nil
	}
	if c := check(t, verify(t, s), CheckPayload); len(c.Faults) != maxFaults || c.More != sectors-maxFaults {
		t.Errorf("got %d faults and %d more, want %d and %d", len(c.Faults), c.More, maxFaults, sectors-maxFaults)
	}
}

// wrongAt is a cipher that decrypts one byte of one sector wrongly.
type wrongAt struct {
	SectorCipher
	sector uint64
}

func (c wrongAt) Decrypt(dst, src []byte, first uint64) {
	c.SectorCipher.Decrypt(dst, src, first)
	if last := first + uint64(len(src)/512); first <= c.sector && c.sector < last {
		dst[(c.sector-first)*512+77] ^= 1
	}
}

func TestVerifyFindsAWrongKernel(t *testing.T) {
	const payload = 2<<20 + 512
	s := format(t, quick, payload)
	for _, sector := range []uint64{0, 1, 2047, 2048, 4096} {
		made := 0
		v := verifier{at: Attached(s), newCipher: func(e extent, key []byte, k serpent.Kernel) (SectorCipher, error) {
			cipher, err := newCipher(e, key, k)
			if made++; made == 1 {
				return wrongAt{cipher, sector}, err
			}
			return cipher, err
		}}
		r, err := v.verify(background, unlocked(t, s))
		if err != nil {
			t.Fatal(err)
		}
		c := check(t, r, CheckPayload)
		if want := quick.PayloadOffset + int64(sector)*512; c.Result != Failed || len(c.Faults) != 1 || c.Faults[0].Offset != want {
			t.Errorf("sector %d wrong: got %+v, want one fault at %d", sector, c, want)
		}
	}
}

func TestVerifyUsesBothKernels(t *testing.T) {
	s := format(t, quick, 512)
	forEachKernel(t, func(t *testing.T, k serpent.Kernel) {
		var used []serpent.Kernel
		v := verifier{at: Attached(s), options: Options{Kernel: k}, newCipher: func(e extent, key []byte, k serpent.Kernel) (SectorCipher, error) {
			used = append(used, k)
			return newCipher(e, key, k)
		}}
		r, err := v.verify(background, unlocked(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if len(used) != 2 || used[0] != k || used[1] != serpent.Generic || r.Kernel != k {
			t.Errorf("used %v, reported %v", used, r.Kernel)
		}
	})
}

func TestVerifyOfAnIncompleteSector(t *testing.T) {
	s := format(t, quick, 1024+100)
	c := check(t, verify(t, s), CheckPayload)
	if want := quick.PayloadOffset + 1024; len(c.Faults) != 1 || c.Faults[0].Offset != want {
		t.Errorf("got %+v, want one fault at %d", c, want)
	}
}

// diskOf returns the beginning of a disk with a file system.
func diskOf(t *testing.T, name string) []byte {
	t.Helper()
	return golden.Unxz(t, "../internal/fsprobe/testdata/"+name+".xz")
}

func TestVerifyOfFileSystems(t *testing.T) {
	for _, c := range []struct {
		disk, name    string
		size, payload int64
	}{
		{"ext4", "ext4", 8 << 20, 8 << 20},
		{"ext4", "ext4", 8 << 20, 9 << 20},
		{"ext4", "ext4", 8 << 20, 8<<20 - 512},
		{"ext2", "ext2", 4 << 20, 1 << 20},
		{"xfs", "xfs", 300 << 20, 1 << 20},
		{"lvm", "LVM2_member", 0, 1 << 20},
	} {
		t.Run(fmt.Sprintf("%s,payload=%d", c.disk, c.payload), func(t *testing.T) {
			s := format(t, quick, c.payload)
			v := open(t, s, Options{})
			if _, err := v.WriteAt(diskOf(t, c.disk), 0); err != nil {
				t.Fatal(err)
			}
			r := verify(t, s)
			if r.FileSystem == nil || r.FileSystem.Name != c.name || r.FileSystem.Size != c.size {
				t.Errorf("got %+v, want %s of %d bytes", r.FileSystem, c.name, c.size)
			}
			got := check(t, r, CheckFileSystem)
			if c.size <= c.payload {
				if got.Result != Passed || r.Err() != nil {
					t.Errorf("got %+v", r)
				}
				return
			}
			if end := quick.PayloadOffset + c.payload; len(got.Faults) != 1 || got.Faults[0].Offset != end || !errors.As(r.Err(), new(*FormatError)) {
				t.Errorf("got %+v, want a fault at %d", got, end)
			}
		})
	}
}

// TestVerifyToTheByte: squashfs says its size in bytes.
func TestVerifyToTheByte(t *testing.T) {
	const payload = 1 << 20
	s := format(t, quick, payload)
	v := open(t, s, Options{})
	for size, want := range map[int64]Result{payload: Passed, payload + 1: Failed} {
		const sizeField = 40 // Linux fs/squashfs/squashfs_fs.h, bytes_used
		disk := diskOf(t, "squashfs")
		binary.LittleEndian.PutUint64(disk[sizeField:], uint64(size))
		if _, err := v.WriteAt(disk, 0); err != nil {
			t.Fatal(err)
		}
		r := verify(t, s)
		if got := check(t, r, CheckFileSystem); r.FileSystem == nil || r.FileSystem.Size != size || got.Result != want {
			t.Errorf("%d bytes in %d: got %+v, %+v, want %s", size, payload, r.FileSystem, got, want)
		}
	}
}

// TestVerifyOfKeySlots: one that was overwritten in part is found, and the
// others are whole.
func TestVerifyOfKeySlots(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		verifySlots := func() (Check, []int) {
			r, err := Verify(background, Attached(s), keyOf(t, s, otherPassphrase), Options{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return check(t, r, CheckMaterial), r.WholeSlots
		}
		if got, whole := verifySlots(); got.Result != Passed || !slices.Equal(whole, []int{0, 1}) {
			t.Errorf("undamaged: %+v, whole are %v", got, whole)
		}
		place := headerOf(t, s).Slots[0]
		text := bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog. "), 30)
		for _, damage := range []struct {
			offset int64
			bytes  []byte
		}{{0, make([]byte, 512)}, {5 * 512, text}, {int64(16*4000 - 512), make([]byte, 512)}} {
			s = c.copy()
			if _, err := s.WriteAt(damage.bytes, place.MaterialOffset+damage.offset); err != nil {
				t.Fatal(err)
			}
			got, whole := verifySlots()
			if got.Result != Failed || got.Faults[0].Slot != 0 || got.Faults[0].Offset != place.MaterialOffset+damage.offset || !slices.Equal(whole, []int{1}) {
				t.Errorf("%d bytes at %d: %+v, whole are %v", len(damage.bytes), damage.offset, got, whole)
			}
		}
		s = c.copy()
		s.Fault = func(op faultstore.Op) error {
			if op.Kind == faultstore.Read && op.Off == place.MaterialOffset {
				return syscall.EIO
			}
			return nil
		}
		if got, whole := verifySlots(); got.Result != Failed || !slices.Equal(whole, []int{1}) {
			t.Errorf("unreadable: %+v, whole are %v", got, whole)
		}
	})
}
