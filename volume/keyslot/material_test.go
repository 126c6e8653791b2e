package keyslot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"serpcrypt/cipher/modes"
	"serpcrypt/internal/hashes"
)

func randomBytes(r *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// materials have keys whose stripes end inside a sector, too, and ciphers with
// keys of another size.
var materials = []struct {
	material   Material
	slotKeyLen int
}{
	{Material{4096, 64, "sha1", "serpent-xts-plain64"}, 64},
	{Material{512, 24, "sha256", "serpent-cbc-plain64"}, 24},
	{Material{0, 1, "sha512", "serpent-xts-plain64"}, 32},
	{Material{1 << 20, 96, "SHA256", "serpent-cbc-essiv:sha256"}, 32},
}

func TestSealThenOpen(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, c := range materials {
		m := c.material
		t.Run(fmt.Sprintf("%+v", m), func(t *testing.T) {
			key, slotKey := randomBytes(r, m.KeyLen), randomBytes(r, c.slotKeyLen)
			sealed, err := m.Seal(key, slotKey)
			if err != nil {
				t.Fatal(err)
			}
			if want := MaterialSize(int64(m.KeyLen)); int64(len(sealed)) != want {
				t.Errorf("%d bytes, want %d", len(sealed), want)
			}
			again, err := m.Seal(key, slotKey)
			if err != nil || bytes.Equal(sealed, again) {
				t.Errorf("twice the same material (%v)", err)
			}
			store := slices.Concat(make([]byte, m.Offset), sealed)
			open := func(slotKey []byte) []byte {
				t.Helper()
				got, err := m.Open(bytes.NewReader(store), slotKey)
				if err != nil {
					t.Fatal(err)
				}
				defer got.Close()
				return bytes.Clone(got.Bytes())
			}
			if got := open(slotKey); !bytes.Equal(got, key) {
				t.Errorf("got %x, want %x", got, key)
			}
			if m.KeyLen < 16 {
				return // too short to be sure that another comes out
			}
			at := int(m.Offset) + r.IntN(m.KeyLen*Stripes)
			store[at] ^= 1
			if got := open(slotKey); bytes.Equal(got, key) {
				t.Errorf("one bit of byte %d does not matter", at)
			}
			store[at] ^= 1
			slotKey[r.IntN(len(slotKey))] ^= 0x80
			if got := open(slotKey); bytes.Equal(got, key) {
				t.Error("one bit of the slot's key does not matter")
			}
		})
	}
}

func TestMaterialErrors(t *testing.T) {
	good := materials[0].material
	key := make([]byte, 64)
	var (
		isSpec = func(err error) bool { return errors.As(err, new(*modes.SpecError)) }
		isHash = func(err error) bool { return errors.As(err, new(*hashes.UnknownError)) }
	)
	for _, c := range []struct {
		name    string
		edit    func(*Material)
		slotKey []byte
		typed   func(error) bool
	}{
		{"cipher", func(m *Material) { m.Cipher = "rot13-xts-plain64" }, key, isSpec},
		{"slot key", func(*Material) {}, key[:63], isSpec},
		{"hash", func(m *Material) { m.Hash = "md5" }, key, isHash},
	} {
		m := good
		c.edit(&m)
		if sealed, err := m.Seal(key, c.slotKey); sealed != nil || !c.typed(err) {
			t.Errorf("%s: Seal: %v", c.name, err)
		}
		if got, err := m.Open(zeros{}, c.slotKey); got != nil || !c.typed(err) {
			t.Errorf("%s: Open: %v", c.name, err)
		}
		if _, err := m.OpenTime(len(c.slotKey)); !c.typed(err) {
			t.Errorf("%s: OpenTime: %v", c.name, err)
		}
	}
	short := bytes.NewReader(make([]byte, good.Offset+MaterialSize(64)-1))
	if got, err := good.Open(short, key); got != nil || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short container: %v", err)
	}
	if taken, err := good.OpenTime(64); err != nil || taken <= 0 {
		t.Errorf("OpenTime: %v, %v", taken, err)
	}
}
