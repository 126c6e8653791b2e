package volume

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/secret"
)

var (
	background = context.Background()
	passphrase = []byte("correct horse")
)

// quick makes containers fast, and small: 512 KiB of header.
var quick = Params{Type: TypeLUKS1, Cipher: "serpent-cbc-essiv:sha256", KeyBits: 128, Iterations: 1000, PayloadOffset: 1032 * 512}

// quick2 is the same with LUKS2: areas for eight key slots end at 1 MiB.
var quick2 = Params{Type: TypeLUKS2, Cipher: "serpent-cbc-essiv:sha256", KeyBits: 128, SectorSize: 512, Iterations: 1000}

// quickKey is a key slot like those.
var quickKey = KeyParams{Iterations: 1000}

func secretCopy(b []byte) *secret.Buffer {
	own, err := secret.Copy(b)
	if err != nil {
		panic(err)
	}
	return own
}

// newStore returns a disk full of bytes that are not zero.
func newStore(size int64) *faultstore.Store {
	return faultstore.New(bytes.Repeat([]byte{0xA5}, int(size)))
}

// format makes a container with that many bytes of payload.
func format(t testing.TB, p Params, payload int64) *faultstore.Store {
	t.Helper()
	size, err := MinSize(p)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(size - max(512, int64(p.SectorSize)) + payload)
	formatStore(t, s, p)
	return s
}

func formatStore(t testing.TB, s Store, p Params) {
	t.Helper()
	formatAt(t, Attached(s), p)
}

func formatAt(t testing.TB, at Stores, p Params) {
	t.Helper()
	f, err := Format(background, at, passphrase, p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
}

// open opens the volume until the test ends.
func open(t testing.TB, s Store, o Options) *Volume {
	t.Helper()
	v, err := Open(Attached(s), unlocked(t, s), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// unlocked returns the volume key until the test ends.
func unlocked(t testing.TB, s Store) *Key {
	t.Helper()
	key, err := Unlock(background, Attached(s), passphrase, AnySlot, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(key.Close)
	return key
}

// layout is a way that a volume can lie in a store.
type layout struct {
	name    string
	extents []extent
}

// layouts are what a format may come up with: of different sector sizes, from
// several ciphers, in any order, and numbered from anywhere.
var layouts = []layout{
	{"512-byte sectors", []extent{
		{size: 3<<20 + 512, offset: 4096, spec: "serpent-xts-plain64", sectorSize: 512},
	}},
	{"4096-byte sectors", []extent{
		{size: 2<<20 + 3*4096, offset: 512, spec: "serpent-cbc-essiv:sha256", sectorSize: 4096},
	}},
	{"three segments", []extent{
		{start: 0, size: 1536, offset: 1 << 20, spec: "serpent-cbc-plain", sectorSize: 512},
		{start: 1536, size: 1 << 20, offset: 2 << 20, spec: "serpent-ctr-plain64", sectorSize: 4096, firstSector: 1<<64 - 8},
		{start: 1536 + 1<<20, size: 5 * 512, offset: 0, spec: "serpent-ecb", sectorSize: 512, firstSector: 77},
	}},
}

func (l layout) size() int64 {
	last := l.extents[len(l.extents)-1]
	return last.start + last.size
}

// open makes a volume over s that lasts until the test ends.
func (l layout) open(t testing.TB, s Store, o Options) *Volume {
	t.Helper()
	v, err := newVolume(s, l.extents, bytes.Repeat([]byte("keys"), 8), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

const layoutStoreSize = 4 << 20

func newRandom(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func randomBytes(r *rand.Rand, n int) []byte {
	p := make([]byte, n+7)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(p[i:], r.Uint64())
	}
	return p[:n]
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// readAll returns the whole volume.
func readAll(t testing.TB, v io.ReaderAt, size int64) []byte {
	t.Helper()
	p := make([]byte, size)
	if n, err := v.ReadAt(p, 0); n != len(p) || err != nil {
		t.Fatalf("read %d of %d bytes: %v", n, size, err)
	}
	return p
}

func forEachKernel(t *testing.T, test func(t *testing.T, k serpent.Kernel)) {
	for _, k := range serpent.Kernels() {
		t.Run(fmt.Sprintf("kernel=%s", k), func(t *testing.T) { test(t, k) })
	}
}
