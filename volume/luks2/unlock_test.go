package luks2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/golden"
	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/keyslot"
	"serpcrypt/volume/luks"
)

var background = context.Background()

const forEver = kdf.MaxIterations // minutes at least

// openSlot tries one slot.
func openSlot(h *Header, r io.ReaderAt, slot int, passphrase []byte) (*secret.Buffer, error) {
	opened, key, err := h.OpenSlots(background, r, []int{slot}, passphrase)
	if err == nil && opened != slot {
		err = fmt.Errorf("slot %d has opened", opened)
	}
	return key, err
}

// checkOpens compares the key in a slot.
func checkOpens(t *testing.T, h *Header, r io.ReaderAt, slot int, passphrase, want []byte) {
	t.Helper()
	key, err := openSlot(h, r, slot, passphrase)
	if err != nil {
		t.Errorf("slot %d: %v", slot, err)
		return
	}
	defer key.Close()
	if !bytes.Equal(key.Bytes(), want) {
		t.Errorf("slot %d: key is %x, want %x", slot, key.Bytes(), want)
	}
}

func TestOpenSlotsOfGoldenImages(t *testing.T) {
	for _, image := range golden.LUKS2(t) {
		content := image.Unpack(t)
		r, size := bytes.NewReader(content), int64(len(content))
		found, err := Read(r, size)
		if err != nil {
			t.Fatal(err)
		}
		h := found.Header
		if err := h.Validate(size, size); err != nil {
			t.Fatal(err)
		}
		for slot, passphrase := range image.Passphrases {
			t.Run(fmt.Sprintf("%s,slot=%d", image.Name, slot), func(t *testing.T) {
				checkOpens(t, h, r, slot, passphrase, image.VolumeKey)
				if key, err := openSlot(h, r, slot, passphrase[1:]); key != nil || err != luks.ErrMismatch {
					t.Errorf("wrong passphrase: %v", err)
				}
				opened, key, err := h.OpenSlots(background, r, h.UsableSlots(), passphrase)
				if h.Keyslots[slot].priority() == PriorityIgnore {
					if key != nil || err != luks.ErrMismatch {
						t.Errorf("a slot to be ignored has been tried: %v", err)
					}
				} else if err != nil || opened != slot {
					t.Errorf("of all slots, %d opens: %v", opened, err)
				} else {
					key.Close()
				}
			})
		}
		if err := h.CheckKey(background, image.VolumeKey); err != nil {
			t.Errorf("%s: %v", image.Name, err)
		}
	}
}

// newContainer returns a header with a digest and no key slots yet, its store,
// and the volume key.
func newContainer(t *testing.T) (*Header, *faultstore.Store, []byte) {
	t.Helper()
	const size = 8 << 20
	h, err := New(Params{Spec: "serpent-xts-plain64", KeyBytes: 64, SectorSize: 4096, StoreSize: size})
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, 64)
	rand.NewChaCha8([32]byte{7}).Read(key)
	if err := h.AddDigest(background, key, "sha256", 1000); err != nil {
		t.Fatal(err)
	}
	return h, faultstore.New(make([]byte, size)), key
}

// Parameters of slots that take no time.
func pbkdf2(hash string) SlotParams {
	return SlotParams{KDF: KDF{Type: KDFPBKDF2, Hash: hash, Iterations: 1000}}
}

func argon2(variant string, memory int) SlotParams {
	return SlotParams{KDF: KDF{Type: variant, Time: 4, Memory: memory, CPUs: 2}}
}

func passphraseOf(slot int) []byte { return fmt.Append(nil, slot) }

// addSlots adds a slot for each of the parameters. The passphrase of a slot is
// its number.
func addSlots(t *testing.T, h *Header, s luks.Store, key []byte, params ...SlotParams) {
	t.Helper()
	for _, p := range params {
		slot := freeNumber(h.Keyslots, MaxSlots)
		sealed, err := h.SealSlot(background, slot, key, passphraseOf(slot), p)
		if err == nil {
			err = h.WriteSlot(s, sealed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// addForeignSlot adds a slot whose area has another cipher than the data, as other
// programs make them.
func addForeignSlot(t *testing.T, h *Header, s luks.Store, slot int, key, passphrase []byte, p SlotParams, encryption string, keySize int) {
	t.Helper()
	sealed, err := h.SealSlot(background, slot, key, passphrase, p)
	if err != nil {
		t.Fatal(err)
	}
	sealed.fields.Area.Encryption, sealed.fields.Area.KeySize = encryption, keySize
	slotKey, err := sealed.fields.derive(background, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	defer slotKey.Close()
	if sealed.material, err = sealed.fields.material().Seal(key, slotKey.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := h.WriteSlot(s, sealed); err != nil {
		t.Fatal(err)
	}
}

// reads remembers where a store is read.
type reads struct {
	io.ReaderAt
	offsets []int64
}

func (r *reads) ReadAt(p []byte, off int64) (int, error) {
	r.offsets = append(r.offsets, off)
	return r.ReaderAt.ReadAt(p, off)
}

func TestOrderOfTrials(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, argon2(KDFArgon2id, 512), pbkdf2("sha1"), argon2(KDFArgon2i, 64), pbkdf2("sha256"), pbkdf2("sha1"), argon2(KDFArgon2id, 64))
	for slot, priority := range map[int]int{2: PriorityPrefer, 3: PriorityPrefer, 4: PriorityIgnore, 5: PriorityNormal} {
		h.Keyslots[slot].Priority = &priority
	}
	if got, want := h.UsableSlots(), []int{0, 1, 2, 3, 5}; !slices.Equal(got, want) {
		t.Fatalf("usable: %v, want %v", got, want)
	}
	for _, c := range []struct{ slots, want []int }{
		{h.UsableSlots(), []int{3, 2, 1, 5, 0}},
		{[]int{0, 4, 1, 2}, []int{2, 1, 0, 4}},
	} {
		r := &reads{ReaderAt: s}
		if _, key, err := h.OpenSlots(background, r, c.slots, []byte("wrong")); key != nil || err != luks.ErrMismatch {
			t.Errorf("wrong passphrase: %v", err)
		}
		var got []int
		for _, offset := range r.offsets {
			for slot, k := range h.Keyslots {
				if k.Area.Offset == offset {
					got = append(got, slot)
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("slots %v were tried in the order %v, want %v", c.slots, got, c.want)
		}
	}
	for slot := range h.Keyslots {
		checkOpens(t, h, s, slot, passphraseOf(slot), key)
	}
}

// TestWhichSlotOpened: hashes, counts and sizes of keys of all kinds.
func TestWhichSlotOpened(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, pbkdf2("sha1"), pbkdf2("SHA1"), pbkdf2("sha512"), pbkdf2("sha256"))
	for slot := 4; slot < 6; slot++ {
		addForeignSlot(t, h, s, slot, key, passphraseOf(slot), pbkdf2("sha1"), "serpent-cbc-plain64", 24)
	}
	for _, cores := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("cores=%d", cores), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			for slot := range h.Keyslots {
				opened, got, err := h.OpenSlots(background, s, h.UsableSlots(), passphraseOf(slot))
				if err != nil || opened != slot || !bytes.Equal(got.Bytes(), key) {
					t.Fatalf("passphrase of slot %d has opened %d, %v", slot, opened, err)
				}
				got.Close()
			}
			if opened, got, err := h.OpenSlots(background, s, h.UsableSlots(), []byte("wrong")); opened != luks.NoSlot || got != nil || err != luks.ErrMismatch {
				t.Errorf("wrong passphrase: slot %d, %v", opened, err)
			}
		})
	}
	if _, got, err := h.OpenSlots(background, s, nil, passphraseOf(0)); got != nil || err != luks.ErrMismatch {
		t.Errorf("no slot: %v", err)
	}
	if _, got, err := h.OpenSlots(background, s, []int{0, 6}, passphraseOf(0)); got != nil || err != luks.ErrSlotUnused {
		t.Errorf("slot 6 is free: %v", err)
	}
}

// TestSlowSlotsHoldUpNoOther: whatever their hash, they would take for ever.
func TestSlowSlotsHoldUpNoOther(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, pbkdf2("sha256"), pbkdf2("sha1"), pbkdf2("sha512"), pbkdf2("sha512"), pbkdf2("sha1"), argon2(KDFArgon2i, 64))
	for _, slot := range []int{0, 1, 3} {
		h.Keyslots[slot].KDF.Iterations = forEver
	}
	h.Keyslots[5].KDF.Time = 1 << 15 // a second or so, as it cannot be stopped
	for _, slot := range []int{2, 4} {
		opened, got, err := h.OpenSlots(background, s, h.UsableSlots(), passphraseOf(slot))
		if err != nil || opened != slot {
			t.Fatalf("passphrase of slot %d has opened %d, %v", slot, opened, err)
		}
		got.Close()
	}
	for _, slots := range [][]int{{0}, {1, 3}, {5}, {2, 5}} {
		ctx, cancel := context.WithCancel(background)
		time.AfterFunc(time.Millisecond, cancel)
		if _, got, err := h.OpenSlots(ctx, s, slots, []byte("wrong")); got != nil || err != context.Canceled {
			t.Errorf("slots %v: %v", slots, err)
		}
	}
	h.Digests[0].Iterations = forEver
	for _, slot := range []int{2, 4} {
		ctx, cancel := context.WithCancel(background)
		time.AfterFunc(10*time.Millisecond, cancel)
		if _, got, err := h.OpenSlots(ctx, s, []int{slot}, passphraseOf(slot)); got != nil || err != context.Canceled {
			t.Errorf("slot %d, digest: %v", slot, err)
		}
	}
}

// TestSlotsThatCannotBeTried: the others can, and if none opens, the error says
// why.
func TestSlotsThatCannotBeTried(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, pbkdf2("sha1"), pbkdf2("sha1"), pbkdf2("sha256"))
	if err := h.Save(s); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field string
		edit  func(h *Header)
	}{
		{"keyslots.1.type", func(h *Header) { h.Keyslots[1].Type = "reencrypt" }},
		{"keyslots.1.kdf.type", func(h *Header) { h.Keyslots[1].KDF.Type = "scrypt" }},
		{"keyslots.1.kdf.hash", func(h *Header) { h.Keyslots[1].KDF.Hash = "md5" }},
		{"keyslots.1.kdf.iterations", func(h *Header) { h.Keyslots[1].KDF.Iterations = 0 }},
		{"keyslots.1.kdf.cpus", func(h *Header) { h.Keyslots[1].KDF.Type = KDFArgon2i; h.Keyslots[1].KDF.Time = 1 }},
		{"keyslots.1.af.type", func(h *Header) { h.Keyslots[1].AF.Type = "luks9" }},
		{"keyslots.1.af.stripes", func(h *Header) { h.Keyslots[1].AF.Stripes = 3999 }},
		{"keyslots.1.af.hash", func(h *Header) { h.Keyslots[1].AF.Hash = "md5" }},
		{"keyslots.1.area.type", func(h *Header) { h.Keyslots[1].Area.Type = "datashift" }},
		{"keyslots.1.area.encryption", func(h *Header) { h.Keyslots[1].Area.Encryption = "rot13-xts-plain64" }},
		{"keyslots.1.area.key_size", func(h *Header) { h.Keyslots[1].Area.KeySize = 63 }},
		{"keyslots.1.area.size", func(h *Header) { h.Keyslots[1].Area.Size = 4096 }},
		{"keyslots.1.key_size", func(h *Header) { h.Keyslots[1].KeySize = 63 }},
		{"keyslots.1", func(h *Header) { h.Digests[0].Keyslots = []int{0, 2} }},
		{"keyslots.1", func(h *Header) {
			other := *h.Digests[0]
			other.Keyslots, other.Segments = []int{1}, nil
			h.Digests[0].Keyslots = []int{0, 2}
			h.Digests[1] = &other
		}},
	} {
		found, err := Read(s, int64(len(s.Bytes())))
		if err != nil {
			t.Fatal(err)
		}
		h := found.Header
		c.edit(h)
		all := []int{1, 0, 2}
		for _, slot := range []int{0, 2} {
			opened, got, err := h.OpenSlots(background, s, all, passphraseOf(slot))
			if err != nil || opened != slot {
				t.Fatalf("%s: passphrase of slot %d has opened %d, %v", c.field, slot, opened, err)
			}
			got.Close()
		}
		_, got, err := h.OpenSlots(background, s, all, passphraseOf(1))
		if field := new(luks.FieldError); got != nil || !errors.As(err, &field) || field.Field != c.field || field.Slot != 1 {
			t.Errorf("%s: got %v", c.field, err)
		}
	}
}

func TestSlotsThatCannotBeRead(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, pbkdf2("sha1"), argon2(KDFArgon2id, 64), pbkdf2("sha256"))
	s.Fault = func(op faultstore.Op) error {
		if op.Off == h.Keyslots[1].Area.Offset || op.Off == h.Keyslots[2].Area.Offset {
			return syscall.EIO
		}
		return nil
	}
	checkOpens(t, h, s, 0, passphraseOf(0), key)
	for _, slot := range []int{1, 2} {
		_, got, err := h.OpenSlots(background, s, []int{0, slot}, []byte("wrong"))
		if failed := new(keyslot.Error); got != nil || !errors.Is(err, syscall.EIO) || !errors.As(err, &failed) || failed.Slot != slot {
			t.Errorf("slot %d: %v", slot, err)
		}
	}
}

// limitAddresses lets the process map only so many bytes more, until the test
// ends.
func limitAddresses(t *testing.T, bytes uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &before); err != nil {
		t.Fatal(err)
	}
	less := before
	less.Cur = min(before.Cur, pages*uint64(os.Getpagesize())+bytes)
	if err := unix.Setrlimit(unix.RLIMIT_AS, &less); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_AS, &before); err != nil {
			t.Error(err)
		}
	})
}

func TestTooLittleMemory(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, argon2(KDFArgon2id, 64), pbkdf2("sha1"), argon2(KDFArgon2i, 128))
	h.Keyslots[0].KDF.Memory = kdf.MaxArgon2Memory
	limitAddresses(t, 2<<30)
	for _, slot := range []int{1, 2} {
		opened, got, err := h.OpenSlots(background, s, h.UsableSlots(), passphraseOf(slot))
		if err != nil || opened != slot {
			t.Fatalf("passphrase of slot %d has opened %d, %v", slot, opened, err)
		}
		got.Close()
	}
	_, got, err := h.OpenSlots(background, s, h.UsableSlots(), passphraseOf(0))
	memory, failed := new(kdf.MemoryError), new(keyslot.Error)
	if got != nil || !errors.As(err, &memory) || memory.Need != 4<<30 || memory.Available >= 4<<30 || !errors.As(err, &failed) || failed.Slot != 0 {
		t.Errorf("got %v", err)
	}
}

func TestUsableSlots(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, slices.Repeat([]SlotParams{pbkdf2("sha1")}, 5)...)
	ignore := PriorityIgnore
	h.Keyslots[1].Priority = &ignore
	h.Keyslots[2].Type = "reencrypt"
	h.Digests[0].Keyslots = []int{0, 1, 2} // none for 3
	h.Digests[1] = &Digest{Type: DigestPBKDF2, Keyslots: []int{4}}
	if got, want := h.UsableSlots(), []int{0, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
