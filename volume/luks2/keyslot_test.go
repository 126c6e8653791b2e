package luks2

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/hashes"
	"serpcrypt/kdf"
	"serpcrypt/volume/luks"
)

// areas are ciphers that slots may have, whatever the data have.
var areas = []struct {
	encryption string
	keySize    int
}{
	{"serpent-xts-plain64", 64},
	{"aes-xts-plain64", 64},
	{"aes-xts-plain64", 32},
	{"aes-cbc-essiv:sha256", 32},
	{"serpent-cbc-essiv:sha256", 16},
}

func TestSealedSlotOpens(t *testing.T) {
	all := []SlotParams{argon2(KDFArgon2i, 64), argon2(KDFArgon2id, 64)}
	for _, hash := range hashes.Names() {
		all = append(all, pbkdf2(hash))
	}
	for i, p := range all {
		own := areas
		if i > 2 {
			own = areas[:2] // the others depend on nothing here
		}
		for _, area := range own {
			t.Run(fmt.Sprintf("%s-%s,%s-%d", p.KDF.Type, p.KDF.Hash, area.encryption, 8*area.keySize), func(t *testing.T) {
				h, s, key := newContainer(t)
				passphrases := map[int][]byte{31: {}, 3: []byte("\x00three\n")}
				for slot, passphrase := range passphrases {
					addForeignSlot(t, h, s, slot, key, passphrase, p, area.encryption, area.keySize)
				}
				if err := h.Save(s); err != nil {
					t.Fatal(err)
				}
				size := int64(len(s.Bytes()))
				found, err := Read(s, size)
				if err != nil {
					t.Fatal(err)
				}
				h = found.Header
				if faults := h.Faults(size, size); len(faults) != 0 {
					t.Fatalf("faults: %v", faults)
				}
				for slot, passphrase := range passphrases {
					checkOpens(t, h, s, slot, passphrase, key)
				}
				if key, err := openSlot(h, s, 3, []byte("three")); key != nil || err != luks.ErrMismatch {
					t.Errorf("wrong passphrase: %v", err)
				}
				if bytes.Equal(h.Keyslots[3].KDF.Salt, h.Keyslots[31].KDF.Salt) {
					t.Error("two slots have the same salt")
				}
			})
		}
	}
}

func TestFieldsOfNewSlot(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, pbkdf2("sha1"), argon2(KDFArgon2id, 64), pbkdf2("SHA512"))
	for slot, want := range []Keyslot{
		{AF: AF{Hash: "sha1"}, Area: Area{Encryption: "serpent-xts-plain64", KeySize: 64}, KDF: KDF{Type: "pbkdf2", Hash: "sha1", Iterations: 1000}},
		{AF: AF{Hash: "sha256"}, Area: Area{Encryption: "serpent-xts-plain64", KeySize: 64}, KDF: KDF{Type: "argon2id", Time: 4, Memory: 64, CPUs: 2}},
		{AF: AF{Hash: "sha512"}, Area: Area{Encryption: "serpent-xts-plain64", KeySize: 64}, KDF: KDF{Type: "pbkdf2", Hash: "sha512", Iterations: 1000}},
	} {
		got := h.Keyslots[slot]
		if len(got.KDF.Salt) != 32 {
			t.Errorf("slot %d: salt of %d bytes", slot, len(got.KDF.Salt))
		}
		want.Type, want.KeySize = "luks2", 64
		want.AF.Type, want.AF.Stripes = "luks1", 4000
		want.Area.Type, want.Area.Offset, want.Area.Size = "raw", int64(32768+slot*258048), 258048
		want.KDF.Salt = got.KDF.Salt
		gotText, err1 := json.Marshal(got)
		wantText, err2 := json.Marshal(want)
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(gotText, wantText) {
			t.Errorf("slot %d: got %s, want %s (%v)", slot, gotText, wantText, err)
		}
	}
	if got, want := h.Digests[0].Keyslots, []int{0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("the digest is for the slots %v, want %v", got, want)
	}
}

// TestOneBitOfMaterial: it makes a wrong key, as a wrong passphrase does. What
// lies in the area behind the material does not count.
func TestOneBitOfMaterial(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, pbkdf2("sha1"), argon2(KDFArgon2id, 64))
	for slot, k := range h.Keyslots {
		const material = 64 * 4000
		for _, c := range []struct {
			at      int64
			matters bool
		}{
			{0, true}, {material - 1, true}, {r.Int64N(material), true}, {material, false}, {k.Area.Size - 1, false},
		} {
			content := bytes.Clone(s.Bytes())
			content[k.Area.Offset+c.at] ^= 1 << r.IntN(8)
			got, err := openSlot(h, bytes.NewReader(content), slot, passphraseOf(slot))
			if c.matters && (got != nil || err != luks.ErrMismatch) || !c.matters && err != nil {
				t.Errorf("slot %d, byte %d: %v", slot, c.at, err)
			}
			got.Close()
		}
	}
}

func TestSlotStaysInItsArea(t *testing.T) {
	h, _, key := newContainer(t)
	content := bytes.Repeat([]byte{0xA5}, 4<<20)
	s := faultstore.New(content)
	addSlots(t, h, s, key, pbkdf2("sha1"), argon2(KDFArgon2id, 64))
	area := h.Keyslots[1].Area
	sealed, err := h.SealSlot(background, 7, key, nil, pbkdf2("sha1"))
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(s.Bytes())
	offset, size := sealed.fields.Area.Offset, int64(len(sealed.material))
	if offset != area.Offset+area.Size || size != 64*4000 || sealed.slot != 7 {
		t.Errorf("slot %d takes %d bytes from byte %d", sealed.slot, size, offset)
	}
	if err := h.WriteSlot(s, sealed); err != nil {
		t.Fatal(err)
	}
	after := s.Bytes()
	if !bytes.Equal(after[:offset], before[:offset]) || !bytes.Equal(after[offset+size:], before[offset+size:]) {
		t.Error("something outside of the slot was written")
	}
	if bytes.Contains(after[offset:offset+size], bytes.Repeat([]byte{0xA5}, 16)) {
		t.Error("a part of the slot was left out")
	}
}

// TestReplaceSlot: the old slot is there until the header is saved.
func TestReplaceSlot(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, pbkdf2("sha1"), pbkdf2("sha1"))
	prefer := PriorityPrefer
	h.Keyslots[0].Priority = &prefer
	if err := h.Save(s); err != nil {
		t.Fatal(err)
	}
	p := argon2(KDFArgon2id, 64)
	if _, err := h.SealSlot(background, 0, key, []byte("new"), p); err != luks.ErrSlotUsed {
		t.Errorf("slot in use: %v", err)
	}
	p.Replace = true
	sealed, err := h.SealSlot(background, 0, key, []byte("new"), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.WriteSlot(s, sealed); err != nil {
		t.Fatal(err)
	}
	size := int64(len(s.Bytes()))
	found, err := Read(s, size)
	if err != nil {
		t.Fatal(err)
	}
	checkOpens(t, found.Header, s, 0, passphraseOf(0), key)
	if err := h.Save(s); err != nil {
		t.Fatal(err)
	}
	if found, err = Read(s, size); err != nil {
		t.Fatal(err)
	}
	if faults := found.Header.Faults(size, size); len(faults) != 0 {
		t.Errorf("faults: %v", faults)
	}
	checkOpens(t, found.Header, s, 0, []byte("new"), key)
	checkOpens(t, found.Header, s, 1, passphraseOf(1), key)
	if _, err := openSlot(found.Header, s, 0, passphraseOf(0)); err != luks.ErrMismatch {
		t.Errorf("old passphrase: %v", err)
	}
	if got := found.Header.Keyslots[0].priority(); got != PriorityPrefer {
		t.Errorf("the priority is now %d", got)
	}
}

func TestRemoveSlot(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, pbkdf2("sha1"), pbkdf2("sha1"), pbkdf2("sha1"))
	h.Tokens[4] = &Token{Type: "any", Keyslots: []int{1, 2}}
	h.Digests[0].Keyslots = []int{0, 1}
	h.Digests[5] = &Digest{Type: DigestPBKDF2, Keyslots: []int{2}}
	h.Digests[6] = &Digest{Type: "for something else"}
	for slot, keys := range [][]int{{1}, {}, nil} {
		area := h.Keyslots[slot].Area
		offset, size, err := h.RemoveSlot(slot)
		if err != nil || offset != area.Offset || size != area.Size || h.Keyslots[slot] != nil {
			t.Errorf("slot %d: %d bytes from byte %d, %v", slot, size, offset, err)
		}
		if got := h.Digests[0].Keyslots; keys != nil && !slices.Equal(got, keys) {
			t.Errorf("slot %d: the digest is still for %v", slot, got)
		}
		if slices.Contains(h.Tokens[4].Keyslots, slot) {
			t.Errorf("slot %d: a token still names it", slot)
		}
		if _, _, err := h.RemoveSlot(slot); err != luks.ErrSlotUnused {
			t.Errorf("slot %d, again: %v", slot, err)
		}
	}
	if h.Digests[0] == nil || h.Digests[5] != nil || h.Digests[6] == nil {
		t.Errorf("digests left: %v", h.Digests)
	}
	if err := h.CheckKey(background, key); err != nil {
		t.Errorf("without key slots: %v", err)
	}
	if err := h.CheckKey(background, append(bytes.Clone(key), 0)); err != luks.ErrMismatch {
		t.Errorf("without key slots, a long key: %v", err)
	}
}

func TestSealSlotRefuses(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, pbkdf2("sha1"))
	var (
		isParam  = func(err error) bool { return errors.As(err, new(*luks.ParamError)) }
		isHash   = func(err error) bool { return errors.As(err, new(*hashes.UnknownError)) }
		isArgon2 = func(err error) bool { return errors.As(err, new(*kdf.Argon2Error)) }
		is       = func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	)
	for _, c := range []struct {
		name  string
		slot  int
		key   []byte
		edit  func(p *SlotParams)
		typed func(error) bool
	}{
		{"slot in use", 0, key, func(*SlotParams) {}, is(luks.ErrSlotUsed)},
		{"negative slot", -1, key, func(*SlotParams) {}, isParam},
		{"slot 32", 32, key, func(*SlotParams) {}, isParam},
		{"short key", 1, key[1:], func(*SlotParams) {}, isParam},
		{"few iterations", 1, key, func(p *SlotParams) { p.KDF.Iterations = 999 }, isParam},
		{"unknown hash", 1, key, func(p *SlotParams) { p.KDF.Hash = "md5" }, isHash},
		{"unknown derivation", 1, key, func(p *SlotParams) { p.KDF.Type = "scrypt" }, isParam},
		{"no derivation", 1, key, func(p *SlotParams) { p.KDF.Type = "" }, isParam},
		{"Argon2 without costs", 1, key, func(p *SlotParams) { p.KDF.Type = KDFArgon2id }, isArgon2},
		{"few passes", 1, key, func(p *SlotParams) { p.KDF = KDF{Type: KDFArgon2i, Time: 3, Memory: 64, CPUs: 1} }, isArgon2},
	} {
		p := pbkdf2("sha1")
		c.edit(&p)
		if sealed, err := h.SealSlot(background, c.slot, c.key, nil, p); sealed != nil || !c.typed(err) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	h.Config.KeyslotsSize = 300000
	if _, err := h.SealSlot(background, 1, key, nil, pbkdf2("sha1")); err != ErrNoSpace {
		t.Errorf("no room: %v", err)
	}
	delete(h.Digests, 0)
	if _, err := h.SealSlot(background, 1, key, nil, pbkdf2("sha1")); err != ErrNoDigest {
		t.Errorf("no digest: %v", err)
	}
}

// TestFailedSlotsLeaveTheHeader as it was.
func TestFailedSlotsLeaveTheHeader(t *testing.T) {
	h, s, key := newContainer(t)
	addSlots(t, h, s, key, pbkdf2("sha1"))
	before, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	p := pbkdf2("sha1")
	p.KDF.Iterations = forEver
	ctx, cancel := context.WithCancel(background)
	go cancel()
	if sealed, err := h.SealSlot(ctx, 1, key, nil, p); sealed != nil || err != context.Canceled {
		t.Errorf("SealSlot: %v", err)
	}
	if err := h.AddDigest(ctx, key, "sha256", forEver); err != context.Canceled {
		t.Errorf("AddDigest: %v", err)
	}
	sealed, err := h.SealSlot(background, 1, key, nil, pbkdf2("sha1"))
	if err != nil {
		t.Fatal(err)
	}
	s.Fault = func(faultstore.Op) error { return syscall.EIO }
	if err := h.WriteSlot(s, sealed); !errors.Is(err, syscall.EIO) {
		t.Errorf("WriteSlot: %v", err)
	}
	if after, err := json.Marshal(h); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the header was %s and is now %s (%v)", before, after, err)
	}
}
