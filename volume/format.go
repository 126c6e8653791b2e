package volume

import (
	"context"
	"crypto/rand"
	"fmt"

	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/luks1"
)

// Params are what a new container is made from. The zero value of each field
// but Iterations is its default.
type Params struct {
	Cipher           string // DefaultCipher
	KeyBits          int    // DefaultKeyBits
	Hash             string // DefaultHash
	Iterations       int    // of PBKDF2 for the passphrase, as UnlockSpeed.Iterations finds them
	DigestIterations int    // of PBKDF2 for the volume key's digest; DigestIterations(Iterations)
	UUID             string // random
	Slot             int    // key slot to use, from 0
	PayloadOffset    int64  // bytes; the first multiple of 1 MiB behind the key slots, or 0 if the header is detached
	Detached         bool   // the payload lies in another store than the header
	VolumeKey        []byte // random
}

// What a container is made with if nothing else is asked for.
const (
	DefaultCipher  = "serpent-xts-plain64"
	DefaultKeyBits = 512
	DefaultHash    = "sha1"
)

// The digest takes one iteration for so many of a key slot, as with cryptsetup.
const digestShare = 8

// DigestIterations returns how many the volume key's digest takes by default, if
// key slots take so many.
func DigestIterations(iterations int) int { return max(iterations/digestShare, kdf.MinIterations) }

// ParamError says what about a parameter is not possible. Others that Format
// returns are *modes.SpecError and *hashes.UnknownError.
type ParamError = luks1.ParamError

func (p Params) withDefaults() Params {
	if p.Cipher == "" {
		p.Cipher = DefaultCipher
	}
	if p.KeyBits == 0 {
		p.KeyBits = DefaultKeyBits
	}
	if p.Hash == "" {
		p.Hash = DefaultHash
	}
	if p.DigestIterations == 0 {
		p.DigestIterations = DigestIterations(p.Iterations)
	}
	return p
}

// newHeader returns the header that the parameters describe, without digest
// and key slot.
func (p Params) newHeader() (*luks1.Header, error) {
	switch {
	case p.KeyBits%8 != 0:
		return nil, &ParamError{Param: "key size", Reason: fmt.Sprintf("%d bits are no whole bytes", p.KeyBits)}
	case p.Slot < 0 || p.Slot >= luks1.NumSlots:
		return nil, &ParamError{Param: "key slot", Reason: fmt.Sprintf("%d (there are 0 to %d)", p.Slot, luks1.NumSlots-1)}
	case p.VolumeKey != nil && len(p.VolumeKey) != p.KeyBits/8:
		return nil, &ParamError{Param: "volume key", Reason: fmt.Sprintf("%d bits, not %d", 8*len(p.VolumeKey), p.KeyBits)}
	}
	if err := luks1.CheckIterations("iterations", p.Iterations); err != nil {
		return nil, err
	}
	if err := luks1.CheckIterations("digest iterations", p.DigestIterations); err != nil {
		return nil, err
	}
	return luks1.New(luks1.Params{
		Spec:          p.Cipher,
		KeyBytes:      p.KeyBits / 8,
		Hash:          p.Hash,
		UUID:          p.UUID,
		PayloadOffset: p.PayloadOffset,
		Detached:      p.Detached,
	})
}

// MinSize returns the size in bytes of the smallest container with these
// parameters, or the error that Format has about them. If the header is detached,
// it is that of the payload's store.
func MinSize(p Params) (int64, error) {
	h, err := p.withDefaults().newHeader()
	if err != nil {
		return 0, err
	}
	return minSize(h), nil
}

func minSize(h *luks1.Header) int64 { return h.PayloadOffset() + luks1.SectorSize }

// HeaderSize returns how many bytes a detached header with these parameters
// takes, or the error that Format has about them.
func HeaderSize(p Params) (int64, error) {
	h, err := p.withDefaults().newHeader()
	if err != nil {
		return 0, err
	}
	return h.Space(), nil
}

// Formatted is a container in the making. Its header is not on the disk.
type Formatted struct {
	at  Stores
	h   *luks1.Header
	key *secret.Buffer
}

// Format makes a container, up to the header, so that nothing interrupted
// looks like one: first it destroys the headers that it finds, then it fills
// the space for key material with random bytes and writes that of one slot.
// Then the payload can be filled through Open, and Commit ends the work.
//
// When ctx is done, Format returns within milliseconds; nothing is written from
// then on.
// Parameters and size are checked before anything is written; errors about
// them are a *SizeError or those of Params.
func Format(ctx context.Context, at Stores, passphrase []byte, p Params) (*Formatted, error) {
	p.Detached = at.detached()
	p = p.withDefaults()
	h, err := p.newHeader()
	if err != nil {
		return nil, err
	}
	headerSize, dataSize, err := at.sizes()
	if err != nil {
		return nil, err
	}
	if dataSize < minSize(h) {
		return nil, &SizeError{Size: dataSize, Need: minSize(h)}
	}
	if headerSize < h.Space() {
		return nil, &SizeError{Size: headerSize, Need: h.Space()}
	}
	s := at.Header
	if err := destroyHeaders(s, headerSize); err != nil {
		return nil, fmt.Errorf("volume: old header: %w", err)
	}
	if err := clearHeaderSpace(ctx, s, h, p.Detached); err != nil {
		return nil, err
	}
	sealed, err := sealKey(ctx, *h, passphrase, p)
	if err != nil {
		return nil, err
	}
	if err := sealed.h.WriteSlot(s, sealed.slot); err != nil {
		sealed.key.Close()
		return nil, fmt.Errorf("volume: %w", err)
	}
	return &Formatted{at, &sealed.h, sealed.key}, nil
}

// sealedKey is a volume key, its digest in the header, and a slot with it.
type sealedKey struct {
	h    luks1.Header
	key  *secret.Buffer
	slot *luks1.SealedSlot
}

func sealKey(ctx context.Context, h luks1.Header, passphrase []byte, p Params) (*sealedKey, error) {
	key := secret.New(p.KeyBits / 8)
	if p.VolumeKey != nil {
		copy(key.Bytes(), p.VolumeKey)
	} else {
		rand.Read(key.Bytes())
	}
	err := h.SetDigest(ctx, key.Bytes(), p.DigestIterations)
	var slot *luks1.SealedSlot
	if err == nil {
		slot, err = h.SealSlot(ctx, p.Slot, key.Bytes(), passphrase, p.Iterations)
	}
	if err != nil {
		key.Close()
		return nil, err
	}
	return &sealedKey{h, key, slot}, nil
}

// destroyHeaders makes LUKS headers unrecognisable, among them the second ones
// of LUKS2, which would let a tool bring the old container back. Their places:
// LUKS2 On-Disk Format 1.1.4, 2.2.
func destroyHeaders(s Store, size int64) error {
	zeros := make([]byte, luks1.SectorSize)
	if err := writeFull(s, zeros, 0); err != nil {
		return err
	}
	const second = "SKUL\xBA\xBE"
	for at := int64(0x4000); at <= 0x400000 && at+luks1.SectorSize <= size; at *= 2 {
		magic := make([]byte, len(second))
		if err := readFull(s, magic, at); err != nil {
			return err
		}
		if string(magic) == second {
			if err := writeFull(s, zeros, at); err != nil {
				return err
			}
		}
	}
	return s.Sync()
}

// clearHeaderSpace writes what cryptsetup writes there too: random bytes where
// key material can be, and zeros elsewhere up to the payload.
func clearHeaderSpace(ctx context.Context, s Store, h *luks1.Header, detached bool) error {
	const piece = 1 << 20
	zeros := make([]byte, piece)
	// A payload may be put very far behind the slots, or elsewhere.
	end := h.Space()
	if h.PayloadOffset() != 0 && !detached {
		end = min(h.PayloadOffset(), h.EndOfSlots()+piece)
	}
	for at := int64(0); at < end; at += piece {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := writeFull(s, zeros[:min(piece, end-at)], at); err != nil {
			return fmt.Errorf("volume: header: %w", err)
		}
	}
	if err := h.FillSlots(s); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	return nil
}

// Open opens the new volume, whose payload is what the store had there. Sync
// or close it before Commit.
func (f *Formatted) Open(o Options) (*Volume, error) {
	headerSize, dataSize, err := f.at.sizes()
	if err != nil {
		return nil, err
	}
	c := luks1Container{f.at, headerSize, dataSize, f.h}
	extents, err := c.extents()
	if err != nil {
		return nil, err
	}
	return newVolume(f.at.Data, extents, f.key.Bytes(), o)
}

// Header returns what the header will say.
func (f *Formatted) Header() *Header {
	c := luks1Container{h: f.h}
	return c.header()
}

// Commit makes a container of it: it waits until all else is on the disk, then
// writes the header, syncs that, and reads it back. If the disk gives something
// else, the error is a *FormatError.
func (f *Formatted) Commit() error { return formatError(f.h.Save(f.at.Header)) }

// Close wipes the volume key.
func (f *Formatted) Close() { f.key.Close() }
