package volume

import (
	"context"
	"crypto/rand"
	"fmt"

	"serpcrypt/internal/secret"
	"serpcrypt/kdf"
	"serpcrypt/volume/luks"
)

// Params are what a new container is made from. The zero value of each field
// but Iterations, or Argon2, is its default.
type Params struct {
	Type             string // TypeLUKS2
	Cipher           string // DefaultCipher
	KeyBits          int    // DefaultKeyBits
	SectorSize       int    // bytes; 4096 if the payload is whole sectors of it, with LUKS1 always 512
	Hash             string // DefaultHash; of the key slot, the digest and the stripes
	KDF              string // of the key slot; PBKDF2
	Iterations       int    // of PBKDF2, as UnlockSpeed.Iterations finds them
	Argon2           Argon2Cost
	UUID             string // random
	Label, Subsystem string // none; LUKS2 only
	Slot             int    // key slot to use, from 0
	PayloadOffset    int64  // bytes; behind the key slots, or 0 if the header is detached
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

// DigestIterations returns how many iterations of PBKDF2 the volume key's digest
// takes in a new container, whose key slot takes so many.
func DigestIterations(iterations int) int { return max(iterations/digestShare, kdf.MinIterations) }

func (p Params) withDefaults() Params {
	if p.Type == "" {
		p.Type = TypeLUKS2
	}
	if p.KDF == "" {
		p.KDF = PBKDF2
	}
	if p.Cipher == "" {
		p.Cipher = DefaultCipher
	}
	if p.KeyBits == 0 {
		p.KeyBits = DefaultKeyBits
	}
	if p.Hash == "" {
		p.Hash = DefaultHash
	}
	return p
}

// draft is a header in the making, without volume key.
type draft interface {
	// minSize returns the least size of the payload's store, and space that of the
	// header's.
	minSize() int64
	space() int64
	// clear prepares the header's space in its store.
	clear(ctx context.Context, s Store) error
	// seal takes the volume key and writes the material of a key slot.
	seal(ctx context.Context, s Store, key, passphrase []byte, p Params) error
	// save writes the header itself.
	save(s Store) error
	// container returns what the draft will be.
	container(at location) container
}

// newDraft returns the header that the parameters describe, for a payload in a
// store of dataSize bytes.
func (p Params) newDraft(dataSize int64) (draft, error) {
	switch {
	case p.KeyBits%8 != 0:
		return nil, luks.BadParam("key size", "%d bits are no whole bytes", p.KeyBits)
	case p.VolumeKey != nil && len(p.VolumeKey) != p.KeyBits/8:
		return nil, luks.BadParam("volume key", "%d bits, not %d", 8*len(p.VolumeKey), p.KeyBits)
	}
	switch p.Type {
	case TypeLUKS1:
		return newLUKS1Draft(p)
	case TypeLUKS2:
		return newLUKS2Draft(p, dataSize)
	}
	return nil, luks.BadParam("type", "%q (%s or %s)", p.Type, TypeLUKS1, TypeLUKS2)
}

func (p Params) keyParams() KeyParams {
	return KeyParams{KDF: p.KDF, Hash: p.Hash, Iterations: p.Iterations, Argon2: p.Argon2}
}

// MinSize returns the size in bytes of the smallest container with these
// parameters, or the error that Format has about them. If the header is detached,
// it is that of the payload's store.
func MinSize(p Params) (int64, error) {
	d, err := p.withDefaults().newDraft(1)
	if err != nil {
		return 0, err
	}
	return d.minSize(), nil
}

// HeaderSize returns how many bytes a detached header with these parameters
// takes, or the error that Format has about them.
func HeaderSize(p Params) (int64, error) {
	d, err := p.withDefaults().newDraft(1)
	if err != nil {
		return 0, err
	}
	return d.space(), nil
}

// Formatted is a container in the making. Its header is not on the disk.
type Formatted struct {
	at    Stores
	draft draft
	made  container // what will be there
	key   *secret.Buffer
}

// Format makes a container, up to the header, so that nothing interrupted
// looks like one: first it destroys the headers that it finds, then it clears
// the space of the header and writes the material of one key slot. Then the
// payload can be filled through Open, and Commit ends the work.
//
// When ctx is done, Format returns within milliseconds; nothing is written from
// then on. Parameters and size are checked before anything is written; errors
// about them are a *SizeError or those of Params. ErrBusy is for a header that
// somebody else is changing.
func Format(ctx context.Context, at Stores, passphrase []byte, p Params) (*Formatted, error) {
	p.Detached = at.detached()
	location, err := at.location()
	if err != nil {
		return nil, err
	}
	p = p.withDefaults()
	d, err := p.newDraft(location.dataSize)
	if err != nil {
		return nil, err
	}
	if location.dataSize < d.minSize() {
		return nil, &SizeError{Size: location.dataSize, Need: d.minSize()}
	}
	if location.headerSize < d.space() {
		return nil, &SizeError{Size: location.headerSize, Need: d.space()}
	}
	if err := destroyOldHeaders(ctx, at.Header, location.headerSize); err != nil {
		return nil, err
	}
	if err := d.clear(ctx, at.Header); err != nil {
		return nil, err
	}
	key, err := newVolumeKey(p)
	if err != nil {
		return nil, err
	}
	if err := d.seal(ctx, at.Header, key.Bytes(), passphrase, p); err != nil {
		key.Close()
		return nil, err
	}
	return &Formatted{at, d, d.container(location), key}, nil
}

func newVolumeKey(p Params) (*secret.Buffer, error) {
	if p.VolumeKey != nil {
		return secret.Copy(p.VolumeKey)
	}
	key, err := secret.New(p.KeyBits / 8)
	if err != nil {
		return nil, err
	}
	rand.Read(key.Bytes())
	return key, nil
}

// destroyOldHeaders waits for those who are changing one: they would write it
// again. Afterwards they find none.
func destroyOldHeaders(ctx context.Context, s Store, size int64) error {
	unlock, err := lockHeader(ctx, s, ExclusiveLock)
	if err != nil {
		return err
	}
	defer unlock()
	if err := destroyHeaders(s, size); err != nil {
		return fmt.Errorf("volume: old header: %w", err)
	}
	return nil
}

// destroyHeaders makes LUKS headers unrecognisable, among them the second ones
// of LUKS2, which would let a tool bring the old container back. What cannot be
// read might be one. Their places: LUKS2 On-Disk Format 1.1.4, 2.2.
func destroyHeaders(s Store, size int64) error {
	zeros := make([]byte, 512)
	if err := writeFull(s, zeros, 0); err != nil {
		return err
	}
	const second = "SKUL\xBA\xBE"
	for at := int64(0x4000); at <= 0x400000 && at+512 <= size; at *= 2 {
		magic := make([]byte, len(second))
		if err := readFull(s, magic, at); err != nil || string(magic) == second {
			if err := writeFull(s, zeros, at); err != nil {
				return err
			}
		}
	}
	return s.Sync()
}

// writeZeros writes that many zeros at the start of a store.
func writeZeros(ctx context.Context, s Store, n int64) error {
	zeros := make([]byte, chunkSize)
	for at := int64(0); at < n; at += chunkSize {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := writeFull(s, zeros[:min(chunkSize, n-at)], at); err != nil {
			return fmt.Errorf("volume: header: %w", err)
		}
	}
	return nil
}

// Open opens the new volume, whose payload is what the store had there. Sync
// or close it before Commit.
func (f *Formatted) Open(o Options) (*Volume, error) {
	extents, err := f.made.extents()
	if err != nil {
		return nil, err
	}
	return newVolume(f.at.Data, extents, f.key.Bytes(), o)
}

// Header returns what the header will say.
func (f *Formatted) Header() *Header { return f.made.header() }

// Commit makes a container of it: it waits until all else is on the disk, then
// writes the header, syncs that, and reads it back. If the disk gives something
// else, the error is a *FormatError.
func (f *Formatted) Commit() error { return f.draft.save(f.at.Header) }

// Close wipes the volume key.
func (f *Formatted) Close() { f.key.Close() }
